#pragma once

// The request that a proxy asks GET /v1/auth about, read from the header fields of that call.

#include <array>
#include <cstddef>
#include <string_view>

#include "base/arena.h"
#include "filter/route.h"
#include "policy/request.h"
#include "protocol/http/message.h"
#include "service/http_service.h"

namespace weir::service {

/// Reads the headers of one GET /v1/auth into the descriptors that policies are matched with.
/// Headers that the client could have sent in place of the proxy are refused, never guessed.
///
/// Not thread-safe: used for one question.
class AuthQuestion {
 public:
  /// `remote` is the peer's address. Values that are found are copied into `arena`.
  AuthQuestion(const http::Request& request, std::string_view remote, const AuthOptions& options,
               Arena& arena);

  /// Why the question is refused; empty if it is not. A literal.
  std::string_view error() const noexcept { return error_; }
  /// The client's address, or the network that addresses are grouped by; empty: unknown.
  std::string_view address() const noexcept { return address_; }
  /// Makes `request` the one that the question is about.
  void Fill(policy::Request& request);

 private:
  void Add(std::string_view key, std::string_view value);
  void AddIp(std::string_view remote);
  void AddIdentity(std::string_view key, std::string_view header);
  void AddTarget();
  std::string_view Only(std::string_view name);

  const http::Request& request_;
  const AuthOptions& options_;
  Arena& arena_;
  std::string_view error_;
  std::string_view address_;
  // Entries that are also bare keys come first.
  std::array<policy::Entry, 5> entries_;
  std::size_t count_ = 0;
  std::size_t subjects_ = 0;
  filter::Routes routes_;
};

}  // namespace weir::service
