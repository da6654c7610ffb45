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

/// What an engine keeps of a key.
enum class KeyStorage : std::uint8_t {
  /// A 96-bit fingerprint under a secret drawn per engine: the least memory. Two keys share a
  /// fingerprint, and so a quota, with a chance of 2^-96 per pair (10 million keys: 6e-16 in all).
  kFingerprint,
  /// The text as well, so that Visit and on_evict can name keys. Which key is meant is told by the
  /// fingerprint here too: looking at texts would cost every check a second cache miss. Of a long
  /// key the first kKeptText bytes are kept, so that long keys do not cost more memory than that.
  kText,
};

/// The most bytes of a key's text that KeyStorage::kText keeps.
inline constexpr std::size_t kKeptText = 256;

/// A key that was dropped to make room.
struct Eviction {
  std::string_view key;  ///< Empty with KeyStorage::kFingerprint.
  Algorithm algorithm;
  bool active;  ///< It still had charges against it, so its quota has been reopened.
};

struct EngineOptions {
  /// The engine never holds more keys than this. Keys that are as good as new go first, since
  /// nothing is lost by it; then, approximately, the least recently used.
  std::size_t max_keys = 1'000'000;
  KeyStorage keys = KeyStorage::kFingerprint;
  /// Must outlive the engine. Null: SystemClock.
  const Clock* clock = nullptr;
  /// Called for each evicted key, on the thread whose call evicted it and while part of the engine
  /// is locked: be brief, and do not call the engine from it.
  std::function<void(const Eviction&)> on_evict = {};
  /// Remember which keys change, for SaveChanges. Costs a few nanoseconds when a key changes for
  /// the first time since it was saved.
  bool track_changes = false;
};

/// Counters since the engine was made. `hits` counts every key of every charging call.
struct EngineStats {
  std::uint64_t hits = 0;
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  std::uint64_t created = 0;
  std::uint64_t evicted = 0;         ///< All evictions, of active and of fresh keys.
  std::uint64_t evicted_active = 0;  ///< Those that reopened a quota; raise max_keys if this grows.
  std::uint64_t contended =
      0;  ///< Times a call found its part of the table locked and had to wait.
};

/// One question of a batch.
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
  std::int64_t stamp = 0;   ///< Names the charge.
  std::string record = {};  ///< The key of the permit that goes when it is settled.
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
/// Thread-safe: any number of threads may call anything at once, and each call on a key is atomic.
/// A key has one state per algorithm, so asking it under quotas of two algorithms limits both
/// apart. A cost of 0 asks without charging; a negative cost is Verdict::kInvalid. A refused call
/// charges nothing.
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

  /// Decides asks[i] into decisions[i] in order, each for itself, with one reading of the clock. On
  /// large tables several times as fast as single calls. Requires decisions.size() >= asks.size().
  void TryAcquireBatch(std::span<const Ask> asks, std::span<Decision> decisions);

  /// Charges all asks or, if one of them is refused, none; says which it was. The decisions tell
  /// what each ask would have got, in order, counting the asks before it; a key may occur more than
  /// once.
  bool TryAcquireAll(std::span<const Ask> asks, std::span<Decision> decisions);

  /// The verdict that TryAcquire would give, without charging; the rest tells how the key stands.
  Decision Peek(std::string_view key, std::int64_t cost = 1);
  Decision Peek(std::string_view key, const Quota& quota, std::int64_t cost = 1);

  /// Charges `cost` permits whether they fit or not: for what is known only afterwards, such as the
  /// tokens of an answer. Tells how the key stands then: kLimited while it is in debt (more than
  /// the limit is used), with the time until it is not. With a cost of 0 only that. At most 2^40
  /// permits are counted, or what flows into a token bucket in 100 years. Under a concurrency quota
  /// nothing is charged.
  Decision Overdraw(std::string_view key, std::int64_t cost);
  Decision Overdraw(std::string_view key, const Quota& quota, std::int64_t cost);

  /// Gives back up to `cost` permits of the latest charges and tells the state then.
  Decision Refund(std::string_view key, std::int64_t cost = 1);
  Decision Refund(std::string_view key, const Quota& quota, std::int64_t cost = 1);

  /// Gives back the permits that `lease` (Decision::lease) names. False if they have come back
  /// already: released before, or expired. So a late or repeated release never frees somebody
  /// else's permits.
  bool Release(std::string_view key, std::int64_t lease);
  bool Release(std::string_view key, const Quota& quota, std::int64_t lease);

  /// Takes up to `want` permits in advance. `quota` must be the narrowed one, so that what is spent
  /// within a lease's term satisfies the original: docs/design/leases.md.
  LeaseGrant Lease(std::string_view key, const Quota& quota, std::int64_t want);
  /// Gives back `count` permits of the lease that was granted `at`, as far as they still weigh.
  Decision Return(std::string_view key, const Quota& quota, Nanos at, std::int64_t count);

  /// Charges an estimate of at least 1 that is settled later. One that is not settled within
  /// `lasts` counts as spent.
  Reservation Reserve(std::string_view key, const Quota& quota, std::int64_t estimate,
                      std::chrono::nanoseconds lasts);
  /// Settles a reservation at its real cost, once: less than the estimate is given back, more is
  /// charged whether it fits or not. False, and nothing happens, if it was settled before, was
  /// refused or has expired.
  bool Settle(const Reservation& reservation, std::int64_t cost);
  /// Changes a charge by `change` permits, less or more, and tells how the key stands as Overdraw
  /// does: what Settle does, for whoever keeps his own account of what is reserved. `stamp` names
  /// the charge as algorithm/settle.h says.
  Decision Adjust(std::string_view key, const Quota& quota, Nanos stamp, std::int64_t change);

  /// Forgets the key's charges, under every algorithm.
  void Reset(std::string_view key);

  /// Gives `key` a quota of its own, until ClearQuota. Charges so far stay.
  void SetQuota(std::string_view key, const Quota& quota);
  void ClearQuota(std::string_view key);

  /// Forgets all charges of all keys. Keys' own quotas stay.
  void Clear();

  /// Drops every key that is as good as new, which changes no decision, and returns how many went.
  /// Worth calling now and then where many keys come once: it frees memory before max_keys asks for
  /// it.
  std::size_t Sweep();

  /// Keys held now, counting a key once per algorithm it is limited with.
  std::size_t size() const;
  EngineStats stats() const;

  /// Shows each key held, a part of the table at a time; keys that come or go meanwhile may be
  /// missed. `visitor` must not call the engine.
  void Visit(const std::function<void(const KeyView&)>& visitor) const;

  /// Writes the state of all keys (docs/design/snapshot-format.md). Runs beside other calls,
  /// locking a small part at a time: each key is consistent in itself, the whole is not of one
  /// moment.
  Status Save(std::ostream& out) const;
  /// Replaces the state of this engine with what Save wrote. Requires the same KeyStorage. On an
  /// error the engine is left empty. Not to be called beside other calls.
  Status Load(std::istream& in);

  /// Appends the state of each key that has changed since the last call (a key that was Reset is
  /// named as forgotten), and returns how many there were. Appends nothing if there were none. Runs
  /// beside other calls; a change that happened before the call is in it. Requires track_changes,
  /// and one call at a time.
  std::size_t SaveChanges(std::string& out);
  /// Appends what an empty engine must read before changes: the secret behind the fingerprints.
  void SaveIdentity(std::string& out) const;
  /// Takes over what calls of SaveIdentity and SaveChanges wrote, in their order, on top of Load or
  /// of an empty engine. Damaged bytes are an error; what stood before them has been taken over.
  /// Not to be called beside other calls.
  Status LoadChanges(std::string_view bytes);

 private:
  class Table;
  std::unique_ptr<Table> table_;
};

}  // namespace weir
