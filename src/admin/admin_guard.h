#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "access/gate.h"
#include "base/ip.h"
#include "config/config.h"
#include "protocol/http/message.h"

namespace weir::admin {

/// Decides who may use the admin API: by API key, by address, or both.
///
/// Without keys it is open to this machine only: to a loopback peer that names a loopback host and
/// does not come through a proxy, since all clients of a proxy have the proxy's address.
///
/// Thread-safe.
class AdminGuard {
 public:
  /// `allow` empty: any address. `keyless` false: without keys no one is admitted.
  AdminGuard(std::shared_ptr<access::Gate> gate, std::vector<IpNetwork> allow, bool keyless = true)
      : gate_(std::move(gate)), allow_(std::move(allow)), keyless_(keyless) {}
  /// With keys that may be used for everything.
  AdminGuard(std::vector<config::Digest> digests, std::vector<IpNetwork> allow)
      : AdminGuard(std::make_shared<access::Gate>(config::Config::Access{}, std::move(digests)),
                   std::move(allow)) {}

  /// The refusal (401, 403 or 429), or nullopt if the request may pass. Keys come in `X-API-Key` or
  /// `Authorization: Bearer`. Requests that another site's page makes a browser send are refused.
  std::optional<http::Response> Refuse(const http::Request& request) const;

  /// For requests that need no key, because none is configured or the path is open to all: refuses
  /// (403) what another site's page makes a browser send. `private_to_machine`: also what a page
  /// sends to a name of its own that points to this machine, while everything is open to it.
  std::optional<http::Response> RefusePage(const http::Request& request, std::string_view remote,
                                           bool private_to_machine) const;

  /// Whether a caller from `address` with `key` (empty: none) may change things, on a protocol
  /// that disconnects browsers.
  bool Admits(std::string_view address, std::string_view key, std::string_view subject = {}) const;

  /// Whether the caller of a request that was not refused may do this as well.
  bool AlsoAdmits(const http::Request& request, access::Operation operation) const;

  bool has_keys() const noexcept { return gate_->has_keys(); }
  access::Gate& gate() const noexcept { return *gate_; }

 private:
  bool MayCome(std::string_view address) const;
  std::optional<http::Response> RefuseKeyless(const http::Request& request) const;

  std::shared_ptr<access::Gate> gate_;
  std::vector<IpNetwork> allow_;
  bool keyless_ = true;
};

/// The handler behind the guard. `guard` must outlive it.
http::Handler Guarded(const AdminGuard& guard, http::Handler handler);

/// The response to a caller that is not admitted: 401, 403, or 429 with Retry-After.
http::Response RefusalOf(const access::Admission& admission, access::Operation operation);

/// The API key that a request carries: in `X-Weir-Key`, which proxies can set beside the client's
/// own headers, in `X-API-Key`, or in `Authorization: Bearer`; empty: none.
std::string_view ApiKeyOf(const http::Request& request);

/// True for 127.0.0.0/8 and ::1.
bool IsLoopback(std::string_view address);

}  // namespace weir::admin
