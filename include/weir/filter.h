#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/engine.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir {

/// What a filter needs to know about an HTTP request, whatever the framework. A view.
struct FilterRequest {
  /// Returns the nth value (from 0) of the header `name` (any case); nullopt beyond the last one.
  using Header =
      std::function<std::optional<std::string_view>(std::string_view name, std::size_t nth)>;

  std::string_view method;
  std::string_view target;  ///< The path as it was sent, not decoded; a query is ignored.
  std::string_view peer;    ///< The address of the peer, without port.
  Header header;            ///< May be empty: no headers.
};

/// What identifies a client.
enum class LimitBy : std::uint8_t { kIp, kApiKey, kUser, kRoute };

/// One limit. Requests that agree in all of `by` share one quota; a request that lacks one of them
/// (no API key, not logged in) is not limited by this rule.
struct FilterRule {
  std::string name;  ///< Unique; clients see it in RateLimit-Policy.
  std::vector<LimitBy> by;
  Quota quota;
  /// Limits only requests to this path, or with a trailing `*` to paths with this prefix, which
  /// then share a quota if `by` names the route. Empty: all, and each path is a route of its own.
  std::string route = {};
  std::int64_t cost = 1;
};

struct FilterOptions {
  std::vector<FilterRule> rules;
  /// X-Forwarded-For is trusted only from these: addresses or networks such as 10.0.0.0/8.
  std::vector<std::string> trusted_proxies = {};
  /// Clients are identified by this many leading bits of their address.
  int ipv4_prefix = 32;
  int ipv6_prefix = 64;
  std::string api_key_header = "X-API-Key";
  /// The user who is logged in; empty: none. Null: the value of `user_header`, if that is set.
  std::function<std::string(const FilterRequest&)> user = nullptr;
  std::string user_header = {};
  bool x_ratelimit_headers = true;  ///< X-RateLimit-Limit, -Remaining, -Reset
  bool ietf_headers = true;         ///< RateLimit, RateLimit-Policy
  EngineOptions engine = {};
};

/// A permit that a concurrency rule has granted, until Filter::Release.
struct FilterLease {
  std::size_t rule = 0;  ///< index into FilterOptions::rules
  std::string key;       ///< as the engine knows it
  std::int64_t lease = 0;
};

/// What to do with the request.
struct FilterVerdict {
  /// True: pass it on, and add `headers` to its response. False: respond with the fields below.
  bool allowed = true;
  int status = 200;  ///< 429: over a limit; 400: the request is ambiguous
  std::vector<std::pair<std::string_view, std::string>> headers;  ///< names are literals
  std::string_view content_type;                                  ///< of a refusal; a literal
  std::string body;                                               ///< of a refusal
  /// The strictest decision and the rule and key it was made for; empty if no rule applied.
  Decision decision;
  std::string rule;
  std::string key;  ///< `ip:192.0.2.1`, `user:123|route:/v1/pay`
  /// The permits of all concurrency rules that applied: pass the verdict to Filter::Release when
  /// the request has ended. Otherwise they are returned when their leases expire.
  std::vector<FilterLease> leases = {};
};

/// A rate limiter in front of a web service: a request in, a verdict out, no sockets and no
/// framework. All rules that apply are charged, or none if one of them refuses.
///
/// Thread-safe: any number of threads may call Check and Release at once.
class Filter {
 public:
  /// Fails, naming the field, if an option is invalid.
  static Result<Filter> Create(FilterOptions options);
  ~Filter();
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;

  /// Charges the request to every rule that applies to it.
  FilterVerdict Check(const FilterRequest& request);

  /// Releases what `verdict.leases` names; false if none of it was still held.
  bool Release(const FilterVerdict& verdict);

  /// The engine that counts, for its statistics, snapshots and resets.
  Engine& engine() noexcept;

 private:
  struct State;
  explicit Filter(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace weir
