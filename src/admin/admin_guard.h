#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ip.h"
#include "config/config.h"
#include "protocol/http/message.h"

namespace weir::admin {

/// Who may use the admin API: by API key, by address, or both. Keys are kept as SHA-256 digests
/// only.
///
/// Immutable, so thread-safe.
class AdminGuard {
 public:
  /// `digests` of the keys; none: only loopback addresses are let in. `allow` empty: any address.
  AdminGuard(std::vector<config::Digest> digests, std::vector<IpNetwork> allow)
      : digests_(std::move(digests)), allow_(std::move(allow)) {}

  /// The refusal (401 or 403), or nothing if the request may pass. Keys come in `X-API-Key` or
  /// `Authorization: Bearer`. Requests that another site's page makes a browser send are refused.
  std::optional<http::Response> Refuse(const http::Request& request) const;

  /// Whether whoever asks from `address` with `key` (empty: none) may change things, on a door
  /// where no browser can send anything.
  bool Admits(std::string_view address, std::string_view key) const;

  bool has_keys() const noexcept { return !digests_.empty(); }

 private:
  bool MayCome(std::string_view address) const;
  bool KeyMatches(std::string_view key) const;

  std::vector<config::Digest> digests_;
  std::vector<IpNetwork> allow_;
};

/// The handler behind the guard. `guard` must outlive it.
http::Handler Guarded(const AdminGuard& guard, http::Handler handler);

/// The API key that a request carries, in `X-API-Key` or `Authorization: Bearer`; empty: none.
std::string_view ApiKeyOf(const http::Request& request);

/// True for 127.0.0.0/8 and ::1.
bool IsLoopback(std::string_view address);

}  // namespace weir::admin
