#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/http/message.h"

namespace weir::http {

/// Paths → handlers. Filled before the service starts, read-only afterwards (so thread-safe).
/// A pattern has literal segments and `{name}` segments: "/admin/policies/{key}". A `{*name}` takes
/// any bytes, `{name}` only UTF-8 without control characters.
class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  void Add(std::string_view method, std::string_view pattern, http::Handler handler);
  /// A literal path whose requests may have bodies of ParserLimits::large_body_bytes. The handler
  /// must not read one on the reactor's thread.
  void AddLarge(std::string_view method, std::string_view path, http::Handler handler);
  bool TakesLarge(std::string_view path) const noexcept;

  /// A literal path without a handler: the connection finds its requests with FindBatched and
  /// answers them together, whatever their method. `id` is the connection's own.
  void AddBatched(std::string_view method, std::string_view path, std::size_t id);
  std::optional<std::size_t> FindBatched(std::string_view path) const noexcept;

  /// What was added, in that order: method and pattern, without the stars.
  const std::vector<std::pair<std::string, std::string>>& routes() const noexcept {
    return routes_;
  }

  /// Called before every handler, including those added later, with the route's place in routes().
  /// If it returns a response, that is the reply, and the handler is not called.
  using Guard = std::function<std::optional<Response>(const Request& request, std::size_t route)>;
  void SetGuard(Guard guard) { guard_ = std::move(guard); }

  /// Called before a handler; the function it returns is called with the handler's response. It may
  /// return an empty one.
  using Witness = std::function<void(const Response& response)>;
  using Observer = std::function<Witness(const Request& request, std::size_t route)>;
  void SetObserver(Observer observer) { observer_ = std::move(observer); }

  /// Finds and calls the handler; answers 404 or 405 (with Allow) itself.
  void Dispatch(http::Request& request, http::Reply reply) const;

 private:
  struct Node;
  Node* Make(std::string_view method, std::string_view pattern);
  std::string Known() const;
  const Node* FindLiteral(std::string_view path) const noexcept;

  std::unique_ptr<Node> root_;
  std::vector<std::pair<std::string, std::string>> routes_;
  Guard guard_;
  Observer observer_;
};

/// Handles requests with a method of `object`, which must outlive the handler.
template <typename Class>
Handler Bind(Class* object, void (Class::*method)(const Request&, Reply)) {
  return [object, method](const Request& request, Reply reply) {
    (object->*method)(request, std::move(reply));
  };
}

}  // namespace weir::http
