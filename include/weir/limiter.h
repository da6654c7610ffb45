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
    kService,   ///< Asks a `weir serve`.
  };
  Mode mode = Mode::kEmbedded;

  /// kEmbedded: where the limits are. "memory:" is this process alone; with redis://,
  /// redis+cluster://, postgres:// or mysql:// they are shared with whoever uses the same store,
  /// the service included: the buckets are the same.
  std::string store = "memory:";
  /// kEmbedded: several stores, each "NAME=URL", of which policies name theirs (`store: NAME`); a
  /// name with several URLs shares its keys among them. `store` is then the name of the one for all
  /// other policies; left as it is, the first.
  std::vector<std::string> stores = {};
  /// kEmbedded: policy files, or folders of them. They are read again when they change; a file that
  /// is wrong then changes nothing, see policies().
  std::vector<std::string> policies = {};
  /// kEmbedded: where services keep the policies of their admin API: a URL of PostgreSQL, MySQL,
  /// Redis or a Redis Cluster, or "auto": in the store, if that is one of them. Empty: files alone.
  std::string policy_store = {};
  std::size_t max_keys = 1'000'000;  ///< Of "memory:".
  bool migrate = true;  ///< Make the tables of a SQL store; false: `weir migrate` does.

  /// kService: http:// or https://, without a path.
  std::string service = "http://127.0.0.1:8080";
  std::string service_key = {};  ///< Goes along as X-API-Key if it is not empty.
  std::string service_ca = {};   ///< https: a PEM file; empty: the authorities the system trusts.
  std::size_t connections = 16;  ///< kService: that are kept open between calls.

  /// From a call to its answer, whatever the store or the service does.
  std::chrono::milliseconds timeout{100};
  /// How long Open waits for the store's first answer; zero: it does not.
  std::chrono::milliseconds connect_timeout{5000};

  /// What has happened to the policies or to where they are kept, and why if that is bad, in words
  /// for a log. Called on threads of the limiter.
  std::function<void(std::string_view what, std::string_view problem)> report = {};
};

/// One thing known about who asks: `user` = `42`.
struct LimitEntry {
  std::string_view key;
  std::string_view value;
};

/// Who asks, and for how much: a bare key, or a descriptor. A view.
struct LimitRequest {
  std::string_view key = {};     ///< If not empty, domain and entries are not looked at.
  std::string_view domain = {};  ///< Empty: "default".
  std::span<const LimitEntry> entries = {};
  std::int64_t cost = 1;  ///< 0 asks without charging.
};

/// What all policies that apply said together.
struct LimitAnswer {
  Decision decision;        ///< The strictest; allowed with a limit of 0 if no policy applies.
  std::string policy = {};  ///< Whose that is; empty if none applies.
  bool degraded = false;    ///< The store could not decide: the policy's on_store_error did.
  std::string leases = {};  ///< Of concurrency policies: what Release takes.

  bool allowed() const noexcept { return decision.allowed(); }
};

/// The policies in force.
struct LimiterPolicies {
  std::size_t from_files = 0;
  std::size_t stored = 0;
  std::uint64_t reloads = 0;
  std::string problem = {};  ///< Of the last reload; empty: it is in force.
};

/// A rate limiter that follows policies, in this process or by asking a service; the program does
/// not see the difference. The same policies, algorithms and numbers as `weir serve`. Link
/// weir::stores.
///
/// An error means that nothing was decided: the request makes no sense (kInvalidArgument), or the
/// service did not answer (kUnavailable, kDeadlineExceeded: whether it charged is not known). A
/// store that is away is no error: each policy's on_store_error says what happens then.
///
/// Thread-safe: any number of threads may call anything at once. Calls wait for their answer, at
/// most as long as the timeout; with "memory:" they never wait. It must outlive all calls.
class Limiter {
 public:
  /// kInvalidArgument if an option or a policy file is wrong, with its place; else as
  /// SharedLimiter::Open. A service that does not answer is no error yet.
  static Result<Limiter> Open(LimiterOptions options);
  /// Reads a configuration of `weir serve`, and WEIR_… of the environment over it, so that program
  /// and service cannot differ: mode, service, service_key, store, policies, policy_store, …
  static Result<Limiter> FromConfig(const std::string& file);
  ~Limiter();
  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;

  /// Charges the cost under all policies that apply, or under none if one of them refuses.
  Result<LimitAnswer> Check(const LimitRequest& request);
  /// The same for a bare key: the policy of exactly this key, else the default policy.
  Result<LimitAnswer> Check(std::string_view key, std::int64_t cost = 1);
  /// What Check would answer, charging nothing.
  Result<LimitAnswer> Peek(const LimitRequest& request);
  /// Charges whether it fits or not, and tells how the request stands then.
  Result<LimitAnswer> Overdraw(const LimitRequest& request);
  /// Gives back up to the cost of the latest charges.
  Result<LimitAnswer> Refund(const LimitRequest& request);
  /// Gives back what LimitAnswer::leases names; false if all of it was back already.
  Result<bool> Release(const LimitRequest& request, std::string_view leases);

  /// kEmbedded: the policies in force. kService: the service knows them.
  LimiterPolicies policies() const;
  /// Whether the store's, or the service's, last answer was one, and if not, why.
  Status health() const;

  class Core;  ///< One for each mode.

 private:
  explicit Limiter(std::unique_ptr<Core> core) noexcept;

  std::unique_ptr<Core> core_;
};

}  // namespace weir
