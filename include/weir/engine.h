#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir {

/// What an engine stores of a key.
enum class KeyStorage : std::uint8_t {
  /// A 96-bit fingerprint under a random secret per engine: the least memory. Two keys share a
  /// fingerprint, and so a quota, with a chance of 2^-96 per pair (10 million keys: 6e-16 in all).
  kFingerprint,
  /// The text as well, so that Visit and on_evict can name keys. Keys are still identified by their
  /// fingerprint: comparing texts would cost every check a second cache miss. Only the first
  /// kKeptText bytes of a key are kept, which bounds the memory of long keys.
  kText,
};

/// The maximum number of bytes of a key's text that KeyStorage::kText keeps.
inline constexpr std::size_t kKeptText = 256;

/// A key that was evicted to make room.
struct Eviction {
  std::string_view key;  ///< Empty with KeyStorage::kFingerprint.
  Algorithm algorithm;
  bool active;  ///< It still had charges against it, so its quota starts over.
};

struct EngineOptions {
  /// The maximum number of keys. Keys whose whole quota is available are evicted first, since
  /// nothing is lost by it; then, approximately, the least recently used.
  std::size_t max_keys = 1'000'000;
  KeyStorage keys = KeyStorage::kFingerprint;
  /// Must outlive the engine. Null: SystemClock.
  const Clock* clock = nullptr;
  /// Called for each evicted key, on the thread whose call evicted it and while part of the engine
  /// is locked: be brief, and do not call the engine from it.
  std::function<void(const Eviction&)> on_evict = {};
  /// Track which keys change, for SaveChanges. Costs a few nanoseconds when a key changes for the
  /// first time since it was saved.
  bool track_changes = false;
};

/// Counters since the engine was created. `hits` counts every key of every charging call.
struct EngineStats {
  std::uint64_t hits = 0;
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  std::uint64_t created = 0;
  std::uint64_t evicted = 0;         ///< All evictions, of active and of fresh keys.
  std::uint64_t evicted_active = 0;  ///< Their quota starts over; raise max_keys if this grows.
  std::uint64_t contended =
      0;  ///< Times a call found its shard of the table locked and had to wait.
};

/// One request of a batch.
struct Ask {
  std::string_view key;
  std::int64_t cost = 1;
  const Quota* quota = nullptr;  ///< Null: the key's own quota, else the engine's default.
};

/// An estimate that was charged, for Engine::Settle. A plain value.
struct Reservation {
  Decision decision = {};  ///< Refused: nothing is reserved.
  std::string key = {};
  Quota quota;
  std::int64_t estimate = 0;
  std::int64_t stamp = 0;   ///< Identifies the charge.
  std::string record = {};  ///< The key of the permit that is released when it is settled.
  std::int64_t lease = 0;   ///< That permit.
  std::chrono::nanoseconds lasts{0};
};

/// One key as Visit shows it.
struct KeyView {
  std::string_view key;  ///< Empty with KeyStorage::kFingerprint.
  Algorithm algorithm;
};

/// Limits any number of keys in this process, within bounded memory.
///
/// Thread-safe, except Load and LoadChanges: any number of threads may call, atomically for a key.
/// A key has one state per algorithm, so quotas of two algorithms limit it independently. A cost of
/// 0 reads the state without charging; a negative cost is Verdict::kInvalid. A refused call charges
/// nothing.
class Engine {
 public:
  explicit Engine(const Quota& default_quota, EngineOptions options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Charges `cost` permits to `key`, under its own quota (SetQuota) or else the default.
  Decision TryAcquire(std::string_view key, std::int64_t cost = 1);
  /// The same under a quota given for this call.
  Decision TryAcquire(std::string_view key, const Quota& quota, std::int64_t cost = 1);

  /// Decides asks[i] into decisions[i] in order, each on its own, with one clock reading. On large
  /// tables several times as fast as single calls. Requires decisions.size() >= asks.size().
  void TryAcquireBatch(std::span<const Ask> asks, std::span<Decision> decisions);

  /// Charges all asks or, if one of them is refused, none; returns whether they were charged. The
  /// decisions are what each ask would have got, in order, counting the asks before it; a key may
  /// occur more than once. `at` is set to the moment of the charges, which identifies them for
  /// Return.
  bool TryAcquireAll(std::span<const Ask> asks, std::span<Decision> decisions, Nanos* at = nullptr);

  /// TryAcquireAll of estimates that Adjust may lower within `lasts`, for callers that keep their
  /// own account of reservations. The lease of a token bucket's decision is then the stamp of the
  /// charge.
  bool TryReserveAll(std::span<const Ask> asks, std::chrono::nanoseconds lasts,
                     std::span<Decision> decisions, Nanos* at = nullptr);

  /// The verdict that TryAcquire would give, without charging, and the state of the key.
  Decision Peek(std::string_view key, std::int64_t cost = 1);
  Decision Peek(std::string_view key, const Quota& quota, std::int64_t cost = 1);

  /// Charges `cost` permits whether they fit or not: for costs that are known only afterwards, such
  /// as the tokens of an answer. Returns the state of the key then: kLimited while it is in debt
  /// (more than the limit is used), with the time until it is not. A cost of 0 only reads the
  /// state. At most 2^40 permits are counted, or what flows into a token bucket in 100 years.
  /// Charges nothing under a concurrency quota.
  Decision Overdraw(std::string_view key, std::int64_t cost);
  Decision Overdraw(std::string_view key, const Quota& quota, std::int64_t cost);

  /// Refunds up to `cost` of the latest charges (concurrency: none, see Release); returns the
  /// state.
  Decision Refund(std::string_view key, std::int64_t cost = 1);
  Decision Refund(std::string_view key, const Quota& quota, std::int64_t cost = 1);

  /// Releases the permits that `lease` (Decision::lease) identifies. False if they were already
  /// released or have expired. So a late or repeated release never frees another caller's
  /// permits.
  bool Release(std::string_view key, std::int64_t lease);
  bool Release(std::string_view key, const Quota& quota, std::int64_t lease);

  /// Takes up to `want` permits in advance. `quota` must be the narrowed one, so that what is spent
  /// within a lease's term satisfies the original: docs/design/leases.md.
  LeaseGrant Lease(std::string_view key, const Quota& quota, std::int64_t want);
  /// Returns `count` permits of the lease that was granted `at`, as far as they still count.
  Decision Return(std::string_view key, const Quota& quota, Nanos at, std::int64_t count);

  /// Charges an estimate of at least 1 that is settled later. If it is not settled within `lasts`,
  /// it counts as spent.
  Reservation Reserve(std::string_view key, const Quota& quota, std::int64_t estimate,
                      std::chrono::nanoseconds lasts);
  /// Settles a reservation at its actual cost, once: less than the estimate is refunded, more is
  /// charged whether it fits or not. False, and nothing happens, if it was already settled, was
  /// refused or has expired.
  bool Settle(const Reservation& reservation, std::int64_t cost);
  /// Changes a charge by `change` permits, up or down, and returns the state of the key as Overdraw
  /// does: what Settle does, for callers that keep their own account of reservations. `stamp`
  /// identifies the charge as in algorithm/settle.h. Lowers a token bucket's charge only if it was
  /// made with TryReserveAll.
  Decision Adjust(std::string_view key, const Quota& quota, Nanos stamp, std::int64_t change);

  /// Resets the key: deletes its charges under every algorithm.
  void Reset(std::string_view key);

  /// Gives `key` its own quota until ClearQuota, also through Load. Existing charges stay.
  void SetQuota(std::string_view key, const Quota& quota);
  void ClearQuota(std::string_view key);

  /// Resets all keys. Keys' own quotas stay.
  void Clear();

  /// Drops every key whose whole quota is available, which changes no decision, and returns how
  /// many were dropped. Worth calling from time to time if many keys occur only once: it frees
  /// memory before max_keys is reached.
  std::size_t Sweep();

  /// Current number of keys, counting a key once per algorithm it is limited with.
  std::size_t size() const;
  EngineStats stats() const;

  /// Visits each key, a part of the table at a time; keys that are added or removed in the meantime
  /// may be missed. `visitor` must not call the engine.
  void Visit(const std::function<void(const KeyView&)>& visitor) const;

  /// Writes the state of all keys (docs/design/snapshot-format.md). Runs concurrently with other
  /// calls, locking a small part at a time: each key is consistent, but the whole is not a snapshot
  /// of one moment.
  Status Save(std::ostream& out) const;
  /// Replaces the state of this engine with what Save wrote. Requires the same KeyStorage. On an
  /// error the engine is left empty. Must not run concurrently with other calls.
  Status Load(std::istream& in);

  /// Appends the state of each key that has changed since the last call (a key that was Reset is
  /// recorded as such), and returns how many there were. Appends nothing if there were none. Runs
  /// concurrently with other calls; a change that happened before the call is included. Requires
  /// track_changes, and one call at a time.
  std::size_t SaveChanges(std::string& out);
  /// Appends what an empty engine must read before changes: the secret behind the fingerprints.
  void SaveIdentity(std::string& out) const;
  /// Applies what SaveIdentity and SaveChanges wrote, in their order, on top of Load or of an empty
  /// engine. Damaged bytes are an error; the records before them have been applied. Must not run
  /// concurrently with other calls.
  Status LoadChanges(std::string_view bytes);

 private:
  class Table;
  std::unique_ptr<Table> table_;
};

}  // namespace weir
