#pragma once

// The requests of one connection that are decided together, and how they are answered: the fast
// path of /v1/check, /v1/peek, /v1/refund, /v1/release, /v1/reserve, /v1/settle and /v1/auth.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/check_batch.h"
#include "protocol/http/message.h"
#include "protocol/http/router.h"
#include "service/http_service.h"

namespace weir::service {

class AuthQuestion;

/// Thread safety: for the reactor's thread.
class HttpExchanges {
 public:
  explicit HttpExchanges(HttpWorker& worker) : worker_(worker) {}
  ~HttpExchanges() { EndParts(); }
  HttpExchanges(const HttpExchanges&) = delete;
  HttpExchanges& operator=(const HttpExchanges&) = delete;

  /// Adds the paths whose requests are decided together.
  static void AddRoutes(http::Router& router);

  /// Takes the request if its path is one of ours; copies what it needs of it.
  bool TryAdd(const http::Request& request, std::string_view remote, Nanos received_at);

  bool empty() const noexcept { return items_.empty(); }
  bool full() const noexcept {
    return batch_.size() >= http::kMaxChecks || items_.size() >= kMaxItems;
  }
  /// The next checks to decide: one turn's work, or all if too many others are midway.
  std::span<limiter::Check> TakeChecks() noexcept;
  /// TakeChecks has returned some of them, and has more.
  bool midway() const noexcept { return taken_ != 0 && taken_ != batch_.size(); }

  /// Keeps alive what decided checks point into, until they are answered.
  void Keep(std::shared_ptr<const void> what) { kept_.push_back(std::move(what)); }

  /// Appends the answers in order. `close`: the last one says so.
  void AppendReplies(Nanos now, bool close, std::string& out);
  std::size_t size() const noexcept { return items_.size(); }
  void Clear();

 private:
  static constexpr std::size_t kMaxItems = 128;

  enum class Endpoint { kCheck, kPeek, kRefund, kRelease, kReserve, kSettle, kAuth };
  struct EndpointInfo {
    std::string_view path;
    std::string_view method;
    store::Op op;
    std::string_view gives_back;  // what the audit log calls it; empty: it gives nothing back
  };
  static const EndpointInfo& InfoOf(Endpoint endpoint) noexcept;

  struct Item {
    Endpoint endpoint;
    std::size_t first = 0;  // of the batch's checks
    std::size_t count = 0;
    bool batch = false;
    bool head = false;
    int denied_status = 200;  // what a refusal is answered with
    int error_status = 0;     // not 0: refused before it was decided
    std::string_view error;
    std::string_view request_id;
    std::string_view traceparent;
    telemetry::SpanContext trace;
    Nanos received_at = 0;
    std::string_view accept;
  };

  void AddChecks(const http::Request& request, Item& item);
  void AddAuth(const http::Request& request, std::string_view remote, Item& item);
  void Authorize(const http::Request& request, std::string_view remote, Item& item);
  void Refuse(Item& item, int status, std::string_view message);
  void RefuseQuestion(Item& item, const AuthQuestion& question);
  void RefuseTwice(Item& item, std::string_view parameter);
  void AppendReply(const Item& item, http::Envelope& envelope, std::string& out);
  void AppendAuthReply(const Item& item, const http::Envelope& envelope, std::string& out);
  void ReadFields(const http::Request& request, Item& item);
  void Trace(const Item& item, Nanos now);
  int StatusOf(const Item& item);
  void EndParts() noexcept;

  HttpWorker& worker_;
  http::CheckBatch batch_;
  std::size_t taken_ = 0;  // of its checks
  std::size_t parts_ = 0;  // registered with the worker while some are left to take
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<Item> items_;
  std::string body_;
};

}  // namespace weir::service
