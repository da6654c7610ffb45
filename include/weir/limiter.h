#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/decision.h"
#include "weir/result.h"

namespace weir {

struct LimiterOptions {
  enum class Mode : std::uint8_t {
    kEmbedded,  ///< Decides in this process.
    kService,   ///< Calls a `weir serve`.
  };
  Mode mode = Mode::kEmbedded;

  /// kEmbedded: where the limits are kept. "memory:" is this process only; with redis://,
  /// redis+cluster://, postgres:// or mysql:// they are shared with every process that uses the
  /// same store, including the service: the buckets are the same.
  std::string store = "memory:";
  /// kEmbedded: several stores, each "NAME=URL"; policies choose theirs with `store: NAME`. Several
  /// URLs under one name share its keys. `store` is then the name of the store for all other
  /// policies (by default the first one).
  std::vector<std::string> stores = {};
  /// kEmbedded: policy files, or folders of them. They are reloaded when they change; an invalid
  /// file then changes nothing, see policies().
  std::vector<std::string> policies = {};
  /// kEmbedded: where services store the policies of their admin API: a URL of PostgreSQL, MySQL,
  /// Redis or Redis Cluster, or "auto": in the store, if it is one of these. Empty: files only.
  std::string policy_store = {};
  std::size_t max_keys = 1'000'000;  ///< For "memory:".
  bool migrate = true;  ///< Create the tables of a SQL store; false: `weir migrate` does.

  /// kService: http:// or https://, without a path.
  std::string service = "http://127.0.0.1:8080";
  std::string service_key = {};  ///< Sent as X-API-Key if not empty.
  std::string service_ca = {};   ///< https: a PEM file; empty: the CAs that the system trusts.
  std::size_t connections = 16;  ///< kService: kept open between calls.

  /// The longest time that a call takes, whatever the store or the service does.
  std::chrono::milliseconds timeout{100};
  /// How long Open waits for the store's first response; zero: it does not wait.
  std::chrono::milliseconds connect_timeout{5000};

  /// Reports changes of the policies or of the policy store, and the reason if that is an error, as
  /// text for a log. Called on threads of the limiter.
  std::function<void(std::string_view what, std::string_view problem)> report = {};
};

/// One fact about the caller: `user` = `42`.
struct LimitEntry {
  std::string_view key;
  std::string_view value;
};

/// Who is asking, and for how much: a bare key, or a descriptor. A view.
struct LimitRequest {
  std::string_view key = {};     ///< If not empty, domain and entries are ignored.
  std::string_view domain = {};  ///< Empty: "default", or the only domain there is.
  std::span<const LimitEntry> entries = {};
  std::int64_t cost = 1;  ///< 0 reads the state without charging.
};

/// The combined result of all policies that apply.
struct LimitAnswer {
  /// The strictest. If no policy applies, allowed with a limit of 0; kNever with `unmatched: deny`.
  Decision decision;
  std::string policy = {};  ///< The policy that made it; empty if none applies.
  bool degraded = false;    ///< The store could not decide: the policy's on_store_error did.
  std::string leases = {};  ///< Of concurrency policies: the argument of Release.

  bool allowed() const noexcept { return decision.allowed(); }
};

/// The result of Reserve.
struct LimitReservation {
  LimitAnswer answer;
  /// Identifies the reservation, for Settle, here or at any node; empty if it was refused, or if no
  /// policy limits the request.
  std::string reservation = {};
};

/// The result of Settle.
struct LimitSettlement {
  bool settled = false;  ///< False: already settled, or expired.
  LimitAnswer standing;  ///< The state of the limits, as Overdraw returns it.
};

/// The policies in force.
struct LimiterPolicies {
  std::size_t from_files = 0;
  std::size_t stored = 0;
  std::uint64_t reloads = 0;
  std::string problem = {};  ///< The error of the last reload; empty: it succeeded.
};

/// A rate limiter that follows policies, in this process or by calling a service; the program does
/// not see the difference. The same policies, algorithms and numbers as `weir serve`. Link
/// weir::stores.
///
/// An error means that nothing was decided: the request is invalid (kInvalidArgument), or the
/// service did not respond (kUnavailable, kDeadlineExceeded: it may have charged). A store that is
/// down is not an error: each policy's on_store_error decides.
///
/// Thread-safe: any number of threads may call anything at once. Calls block until there is a
/// result, at most for the timeout; with "memory:" they never block. It must outlive all calls.
class Limiter {
 public:
  /// kInvalidArgument if an option or a policy file is invalid, with the position; otherwise as
  /// SharedLimiter::Open. A service that does not respond is not an error yet.
  static Result<Limiter> Open(LimiterOptions options);
  /// Reads a configuration of `weir serve`, overridden by WEIR_… environment variables, so that
  /// program and service agree: mode, service, service_key, store, policies, policy_store, …
  static Result<Limiter> FromConfig(const std::string& file);
  ~Limiter();
  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;

  /// Charges the cost under all policies that apply, or under none if one of them refuses.
  Result<LimitAnswer> Check(const LimitRequest& request);
  /// The same for a bare key: the policy with exactly this key, or else the default policy.
  Result<LimitAnswer> Check(std::string_view key, std::int64_t cost = 1);
  /// What Check would return, without charging.
  Result<LimitAnswer> Peek(const LimitRequest& request);
  /// Charges whether it fits or not, and returns the state then.
  Result<LimitAnswer> Overdraw(const LimitRequest& request);
  /// Refunds up to the cost of the latest charges.
  Result<LimitAnswer> Refund(const LimitRequest& request);
  /// Releases what LimitAnswer::leases names; false if none of it was still held.
  Result<bool> Release(const LimitRequest& request, std::string_view leases);

  /// Charges an estimate of at least 1 that is settled later; if it is not settled within `lasts`
  /// (1 ms to 24 h), it counts as spent.
  Result<LimitReservation> Reserve(const LimitRequest& request,
                                   std::chrono::milliseconds lasts = std::chrono::minutes(10));
  /// Settles a reservation at its actual cost, once: less than the estimate is refunded, more is
  /// charged whether it fits or not.
  Result<LimitSettlement> Settle(std::string_view reservation, std::int64_t cost);

  /// kEmbedded: the policies in force. kService: only the service knows them.
  LimiterPolicies policies() const;
  /// Whether the last call to the store, or to the service, succeeded, and if not, why.
  Status health() const;

  class Core;  ///< One for each mode.

 private:
  explicit Limiter(std::unique_ptr<Core> core) noexcept;

  std::unique_ptr<Core> core_;
};

}  // namespace weir
