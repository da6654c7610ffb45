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
#include "weir/engine.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir {

struct SharedLimiterOptions {
  /// From a call to its answer, whatever the store does: then it is kDeadlineExceeded.
  std::chrono::milliseconds timeout{100};
  /// How long Open waits for the store's first answer. Zero: it does not wait, and a store that is
  /// away is no error yet.
  std::chrono::milliseconds connect_timeout{5000};
  std::size_t connections = 0;      ///< To the store; 0: as many as suit it.
  std::size_t max_waiting = 65536;  ///< Calls that wait at once; more are kResourceExhausted.
  /// The most keys whose refusal is remembered, so that a flood on them does not reach the store.
  std::size_t max_refusals = 65536;
  bool migrate = true;  ///< Make the tables of a SQL store; false: `weir migrate` does.
  /// What all keys begin with in the store. The service's buckets never begin so; with an empty
  /// prefix you name them yourself and can share them.
  std::string prefix = "lib|";
};

/// What TryAcquireAll said.
struct SharedDecisions {
  bool granted = false;             ///< All were charged; else none.
  std::vector<Decision> decisions;  ///< In the order of the asks, as Engine::TryAcquireAll's.
};

/// What Reserve said.
struct SharedReservation {
  Decision decision;
  /// Names what was reserved, for Settle, in this process or another; empty if it was refused.
  std::string reservation;
};

/// What Settle said.
struct SharedSettlement {
  bool settled = false;  ///< False: settled before, or expired.
  Decision standing;     ///< How the key stands, as Overdraw tells it.
};

/// Limits any number of keys together with all other processes that use the same store: Redis,
/// Redis Cluster, PostgreSQL or MariaDB. The same algorithms and numbers as Engine, exact under any
/// concurrency; the store's clock decides. Link weir::stores.
///
/// An error means that it could not be decided, and what to do then is up to you: kUnavailable and
/// kDeadlineExceeded do not say that nothing was charged, only that nobody can tell. While the
/// store is away, calls fail at once instead of waiting; within a second of its return they are
/// exact again.
///
/// Thread-safe: any number of threads may call anything at once; calls that come together go to the
/// store together. It must outlive all calls. Callbacks run on a thread of the limiter, one at a
/// time: be brief in them, do not throw, and do not call what waits (that is kFailedPrecondition).
/// A call that is refused before it is sent is told on the calling thread. The destructor tells
/// kUnavailable to all that still wait, on its own thread.
class SharedLimiter {
 public:
  using OnDecision = std::function<void(Result<Decision>)>;
  using OnDecisions = std::function<void(Result<SharedDecisions>)>;
  using OnRelease = std::function<void(Result<bool>)>;
  using OnReservation = std::function<void(Result<SharedReservation>)>;
  using OnSettlement = std::function<void(Result<SharedSettlement>)>;
  using OnReset = std::function<void(Status)>;

  /// The longest key, without the prefix, and the most keys of one TryAcquireAll.
  static constexpr std::size_t kMaxKeyBytes = 4000;
  static constexpr std::size_t kMaxAsks = 256;

  /// Opens the store that `url` names: redis://, rediss:// (TLS), redis+cluster://,
  /// rediss+cluster://, postgres:// or mysql://. kInvalidArgument if the URL or an option makes no
  /// sense, kUnavailable if the store does not answer in time; at once kUnauthenticated or
  /// kPermissionDenied if it does not let us in, kNotFound if no host has its name, and
  /// kFailedPrecondition if its tables are of a newer version. Errors never repeat a password, and
  /// nothing is ever written to a log.
  static Result<SharedLimiter> Open(const std::string& url, SharedLimiterOptions options = {});
  ~SharedLimiter();
  SharedLimiter(SharedLimiter&&) noexcept;
  SharedLimiter& operator=(SharedLimiter&&) noexcept;

  /// Charges `cost` permits to `key` under `quota`. 0 asks without charging.
  Result<Decision> TryAcquire(std::string_view key, const Quota& quota, std::int64_t cost = 1);
  /// Charges all asks or, if one of them is refused, none. Each ask needs its quota. In a Redis
  /// Cluster all keys must share a slot: by default all keys of a prefix do, while a key that
  /// begins with "{t}" shares it with all keys that begin so.
  Result<SharedDecisions> TryAcquireAll(std::span<const Ask> asks);
  /// The verdict that TryAcquire would give, without charging.
  Result<Decision> Peek(std::string_view key, const Quota& quota, std::int64_t cost = 1);
  /// Charges `cost` whether it fits or not, and tells how the key stands: see Engine::Overdraw.
  Result<Decision> Overdraw(std::string_view key, const Quota& quota, std::int64_t cost);
  /// Gives back up to `cost` permits of the latest charges.
  Result<Decision> Refund(std::string_view key, const Quota& quota, std::int64_t cost = 1);
  /// Gives back what Decision::lease of a concurrency quota names; false if it was back already.
  Result<bool> Release(std::string_view key, const Quota& quota, std::int64_t lease);
  /// Charges an estimate of at least 1 that is settled later; one that is not settled within
  /// `lasts` (1 ms to 24 h) counts as spent.
  Result<SharedReservation> Reserve(std::string_view key, const Quota& quota, std::int64_t estimate,
                                    std::chrono::milliseconds lasts = std::chrono::minutes(10));
  /// Settles a reservation at its real cost, once: less than the estimate is given back, more is
  /// charged whether it fits or not. kInvalidArgument if the text is not that of a reservation.
  Result<SharedSettlement> Settle(std::string_view reservation, std::int64_t cost);
  /// Forgets the key's charges, under every algorithm.
  Status Reset(std::string_view key);

  /// The same without waiting. Keys and quotas are copied.
  void TryAcquireAsync(std::string_view key, const Quota& quota, std::int64_t cost,
                       OnDecision done);
  void TryAcquireAllAsync(std::span<const Ask> asks, OnDecisions done);
  void PeekAsync(std::string_view key, const Quota& quota, std::int64_t cost, OnDecision done);
  void OverdrawAsync(std::string_view key, const Quota& quota, std::int64_t cost, OnDecision done);
  void RefundAsync(std::string_view key, const Quota& quota, std::int64_t cost, OnDecision done);
  void ReleaseAsync(std::string_view key, const Quota& quota, std::int64_t lease, OnRelease done);
  void ReserveAsync(std::string_view key, const Quota& quota, std::int64_t estimate,
                    std::chrono::milliseconds lasts, OnReservation done);
  void SettleAsync(std::string_view reservation, std::int64_t cost, OnSettlement done);
  void ResetAsync(std::string_view key, OnReset done);

  /// Whether the store's last answer was one, in a cluster that of every master that is asked, and
  /// if not, why.
  Status health() const;

 private:
  class Core;
  explicit SharedLimiter(std::unique_ptr<Core> core) noexcept;

  std::unique_ptr<Core> core_;
};

}  // namespace weir
