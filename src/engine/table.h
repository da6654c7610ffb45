#pragma once

// The engine behind the public class: shards, the bound on keys, and the calls. A call hashes its
// key, prefetches the bucket, reads the clock, locks the shard, runs the algorithm's step, and
// unlocks.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_hash.h"
#include "base/pages.h"
#include "base/spin_lock.h"
#include "engine/shard.h"
#include "weir/clock.h"
#include "weir/engine.h"

namespace weir::engine {

class Reader;

/// As thread-safe as Engine, whose calls these are.
class Table {
 public:
  Table(const Quota& default_quota, EngineOptions options);

  Decision Acquire(std::string_view key, const Quota* quota, std::int64_t cost);
  void AcquireBatch(std::span<const Ask> asks, std::span<Decision> decisions);
  bool AcquireAll(std::span<const Ask> asks, std::span<Decision> decisions, Nanos* at);
  /// `lasts` 0: as AcquireAll.
  bool ReserveAll(std::span<const Ask> asks, Nanos lasts, std::span<Decision> decisions, Nanos* at);
  Decision Peek(std::string_view key, const Quota* quota, std::int64_t cost);
  Decision Overdraw(std::string_view key, const Quota* quota, std::int64_t cost);
  Decision Refund(std::string_view key, const Quota* quota, std::int64_t cost);
  bool Release(std::string_view key, const Quota* quota, std::int64_t lease);
  LeaseGrant Lease(std::string_view key, const Quota& quota, std::int64_t want);
  Decision Return(std::string_view key, const Quota& quota, Nanos at, std::int64_t count);
  Decision Adjust(std::string_view key, const Quota& quota, Nanos stamp, std::int64_t change);
  void Reset(std::string_view key);
  void SetQuota(std::string_view key, const Quota& quota);
  void ClearQuota(std::string_view key);
  void Clear();
  std::size_t Sweep();
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  EngineStats stats() const;
  void Visit(const std::function<void(const KeyView&)>& visitor) const;
  Status Save(std::ostream& out) const;
  Status Load(std::istream& in);
  std::size_t SaveChanges(std::string& out);
  void SaveIdentity(std::string& out) const;
  Status LoadChanges(std::string_view bytes);

 private:
  /// A key being looked up. Without initial values: a batch has an array of them.
  struct Located {
    Fingerprint fingerprint;
    Shard* shard;
    Bucket* home;
  };
  /// Shared by all keys of one call.
  struct Call {
    Nanos now = 0;
    std::span<const Fingerprint> pinned;  ///< keys of this call: never evicted by it
    Nanos reserved = 0;                   ///< how long the charges can be settled; 0: they cannot
  };
  /// One key, with its shard locked while this object lives.
  struct Held {
    Held(const Table& table, std::string_view key, const Quota* given);

    Located at;
    Nanos now;  // read before the lock is taken
    std::lock_guard<SpinLock> hold;
    const Quota& quota;
    Shard::Place place;
  };
  class Transaction;

  // "Here": inlined, for the calls where nanoseconds count.
  Located Locate(std::string_view key) const noexcept;
  Located LocateHere(std::string_view key) const noexcept;
  std::uint64_t ShardIndex(const Fingerprint& f) const noexcept;
  static void Prefetch(const Located& at) noexcept;
  void LocateStretch(std::span<const Ask> asks, Located* at) const noexcept;
  void ChargeStretch(std::span<const Ask> asks, const Located* at, Decision* decisions,
                     const Call& call);
  /// The part of a key's text that is kept: keys are identified by their fingerprints.
  std::string_view TextOf(std::string_view key) const noexcept {
    return text_ ? key.substr(0, kKeptText) : std::string_view();
  }

  // These require that the key's shard is locked.
  const Quota& QuotaOf(const Located& at, const Quota* given) const noexcept;
  const Quota& OwnQuotaOf(const Located& at) const noexcept;
  Decision Charge(const Located& at, std::string_view key, const Quota& quota, std::int64_t cost,
                  const Call& call);
  Decision ChargeHere(const Located& at, std::string_view key, const Quota& quota,
                      std::int64_t cost, const Call& call);
  Decision ChargeInline(const Located& at, Shard::Place place, std::string_view key,
                        const Quota& quota, std::int64_t cost, const Call& call);
  Decision ChargeBoxed(const Located& at, std::string_view key, const Quota& quota,
                       std::int64_t cost, const Call& call);
  Decision StepBoxed(const Located& at, std::string_view key, const Quota& quota, std::int64_t cost,
                     const Call& call);
  Decision OverdrawInline(const Located& at, Shard::Place place, std::string_view key,
                          const Quota& quota, std::int64_t cost, const Call& call);
  Decision OverdrawBoxed(const Located& at, std::string_view key, const Quota& quota,
                         std::int64_t cost, const Call& call);
  Decision Reserve(const Located& at, std::string_view key, const Quota& quota, std::int64_t cost,
                   const Call& call);
  Shard::Place BoxFor(const Located& at, std::string_view key, const Quota& quota,
                      const Call& call);
  template <typename Step>
  Decision Change(std::string_view key, const Quota& quota, Step change);
  Shard::Place Find(const Located& at, Algorithm algorithm) const noexcept;
  Shard::Place Create(Shard& shard, const Fingerprint& f, Box* box, const Call& call);
  Shard::Place CreateInline(Shard& shard, const Fingerprint& f, std::string_view key,
                            const Call& call);
  bool MakeRoom(Shard& shard, const Call& call);
  bool EvictElsewhere(Nanos now, bool fresh_only, std::size_t tries);
  void Evict(Shard& shard, const Shard::Victim& victim);
  void Erase(Shard& shard, const Shard::Place& place) noexcept;
  bool ReserveKey() noexcept;

  /// Adopts the secret of fingerprints that were saved. Requires that there are no keys.
  void Adopt(const KeyHash& hash);
  Status LoadKeys(std::istream& in);
  void TrackChanges();
  void DropChanges();
  std::size_t PutChanges(Shard& shard, std::string& out);
  Status LoadBatch(std::istream& in);
  Status LoadIdentity(Reader& in);
  std::uint64_t identity() const noexcept;
  void Forget(const Fingerprint& fingerprint);
  /// Creates a key with the state from a snapshot. False if it already exists.
  bool Restore(Algorithm algorithm, const Fingerprint& fingerprint, std::span<std::uint8_t> bytes,
               std::string_view key, const Call& call);

  const Quota default_quota_;
  const EngineOptions options_;
  const Clock* const clock_;
  const bool text_;
  KeyHash hash_;
  Pages memory_;
  Pages texts_;  // empty unless texts are kept
  std::uint32_t shard_count_;
  std::uint32_t shard_buckets_;      // in each
  std::unique_ptr<Shard[]> shards_;  // after memory_: shards free what their buckets point to
  std::atomic<std::size_t> size_{0};
  std::vector<std::atomic<std::uint64_t>> changed_shards_;  // a bit each; empty: not tracked
  std::atomic<std::uint32_t> rotor_{0};                     // where EvictElsewhere looks next
};

}  // namespace weir::engine
