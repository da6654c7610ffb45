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
  /// The longest time that a call takes, whatever the store does; then it is kDeadlineExceeded.
  std::chrono::milliseconds timeout{100};
  /// How long Open waits for the store's first response. Zero: it does not wait, and a store that
  /// is down is not an error yet.
  std::chrono::milliseconds connect_timeout{5000};
  std::size_t connections = 0;      ///< To the store; 0: chosen for the store.
  std::size_t max_waiting = 65536;  ///< Calls waiting at once; more are kResourceExhausted.
  /// The maximum number of keys whose refusal is cached, so that floods do not reach the store.
  std::size_t max_refusals = 65536;
  bool migrate = true;  ///< Create the tables of a SQL store; false: `weir migrate` does.
  /// The prefix of all keys in the store. The service's buckets never have it; with an empty prefix
  /// you can name and share them.
  std::string prefix = "lib|";
};

/// The result of TryAcquireAll.
struct SharedDecisions {
  bool granted = false;             ///< True: all were charged; false: none.
  std::vector<Decision> decisions;  ///< In the order of the asks, as with Engine::TryAcquireAll.
};

/// The result of Reserve.
struct SharedReservation {
  Decision decision;
  /// Identifies the reservation, for Settle, in any process; empty if it was refused.
  std::string reservation;
};

/// The result of Settle.
struct SharedSettlement {
  bool settled = false;  ///< False: already settled, or expired.
  Decision standing;     ///< The state of the key, as Overdraw returns it.
};

/// Limits any number of keys together with all other processes that use the same store: Redis,
/// Redis Cluster, PostgreSQL, MySQL or MariaDB. The same algorithms and numbers as Engine, exact
/// under any concurrency; the store's clock decides. Link weir::stores.
///
/// An error means that the call could not be decided, and you choose what to do then. With
/// kUnavailable and kDeadlineExceeded it is unknown whether anything was charged. While the store
/// is down, calls fail at once instead of waiting; within a second after it is back they are exact
/// again.
///
/// Thread-safe: any number of threads may call anything at once; concurrent calls are sent to the
/// store together. It must outlive all calls. Callbacks run on a thread of the limiter, one at a
/// time: be brief in them, do not throw, and do not make blocking calls (kFailedPrecondition). A
/// call that is refused before it is sent calls back on the calling thread. The destructor calls
/// back with kUnavailable for all that still wait, on its own thread.
class SharedLimiter {
 public:
  using OnDecision = std::function<void(Result<Decision>)>;
  using OnDecisions = std::function<void(Result<SharedDecisions>)>;
  using OnRelease = std::function<void(Result<bool>)>;
  using OnReservation = std::function<void(Result<SharedReservation>)>;
  using OnSettlement = std::function<void(Result<SharedSettlement>)>;
  using OnReset = std::function<void(Status)>;

  /// The longest key, without the prefix, and the maximum number of keys of a TryAcquireAll.
  static constexpr std::size_t kMaxKeyBytes = 4000;
  static constexpr std::size_t kMaxAsks = 256;

  /// Opens the store at `url`: redis://, rediss:// (TLS), redis+cluster://, rediss+cluster://,
  /// postgres:// or mysql://. kInvalidArgument if the URL or an option is invalid, kUnavailable if
  /// the store does not respond in time; at once kUnauthenticated or kPermissionDenied if
  /// authentication fails, kNotFound if the host cannot be resolved, and kFailedPrecondition if
  /// its tables have a newer version. Errors never contain a password, and nothing is written to a
  /// log.
  static Result<SharedLimiter> Open(const std::string& url, SharedLimiterOptions options = {});
  ~SharedLimiter();
  SharedLimiter(SharedLimiter&&) noexcept;
  SharedLimiter& operator=(SharedLimiter&&) noexcept;

  /// Charges `cost` permits to `key` under `quota`. 0 reads the state without charging.
  Result<Decision> TryAcquire(std::string_view key, const Quota& quota, std::int64_t cost = 1);
  /// Charges all asks or, if one of them is refused, none. Each ask needs a quota. In a Redis
  /// Cluster all keys must share a slot: by default all keys of a prefix do, while a key that
  /// begins with "{t}" shares it with all keys that begin with that.
  Result<SharedDecisions> TryAcquireAll(std::span<const Ask> asks);
  /// The verdict that TryAcquire would give, without charging.
  Result<Decision> Peek(std::string_view key, const Quota& quota, std::int64_t cost = 1);
  /// Charges `cost` whether it fits or not, and returns the state: see Engine::Overdraw.
  Result<Decision> Overdraw(std::string_view key, const Quota& quota, std::int64_t cost);
  /// Refunds up to `cost` permits of the latest charges.
  Result<Decision> Refund(std::string_view key, const Quota& quota, std::int64_t cost = 1);
  /// Releases the permit that Decision::lease identifies; false if it was not held any more.
  Result<bool> Release(std::string_view key, const Quota& quota, std::int64_t lease);
  /// Charges an estimate of at least 1 that is settled later; if it is not settled within `lasts`
  /// (1 ms to 24 h), it counts as spent.
  Result<SharedReservation> Reserve(std::string_view key, const Quota& quota, std::int64_t estimate,
                                    std::chrono::milliseconds lasts = std::chrono::minutes(10));
  /// Settles a reservation at its actual cost, once: less than the estimate is refunded, more is
  /// charged whether it fits or not. kInvalidArgument if it is not a reservation.
  Result<SharedSettlement> Settle(std::string_view reservation, std::int64_t cost);
  /// Resets the key: deletes its charges under every algorithm.
  Status Reset(std::string_view key);

  /// The same without blocking. Keys and quotas are copied.
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

  /// Whether the last call to the store succeeded (in a cluster, to every master in use), and if
  /// not, why.
  Status health() const;

 private:
  class Core;
  explicit SharedLimiter(std::unique_ptr<Core> core) noexcept;

  std::unique_ptr<Core> core_;
};

}  // namespace weir
