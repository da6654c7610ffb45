#pragma once

// A shard is a small hash table under one lock: buckets are probed linearly from the key's home.
// Slots never move, so a probe path grows only by inserts and shrinks only by erasures, which the
// buckets' overflow counts track exactly. The table is sized so that a shard is never full before
// the engine is.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/spin_lock.h"
#include "engine/box.h"
#include "engine/bucket.h"
#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::engine {

struct FingerprintHash {
  std::size_t operator()(const Fingerprint& f) const noexcept { return f.high; }
};

/// Thread safety: everything except `lock` itself requires that `lock` is held.
class alignas(128) Shard {
 public:
  /// A slot in a bucket; empty if bucket is null.
  struct Place {
    Bucket* bucket = nullptr;
    int index = 0;

    explicit operator bool() const noexcept { return bucket != nullptr; }
    bool Holds(const Fingerprint& f) const noexcept {
      return slot().high == f.high && slot().low == f.low && bucket->Has(index);
    }
    /// As above, for a key whose state is in its slot.
    bool HoldsInline(const Fingerprint& f) const noexcept {
      return slot().high == f.high && slot().low == f.low && bucket->HasInline(index);
    }
    Slot& slot() const noexcept { return bucket->slots[index]; }
    bool boxed() const noexcept { return bucket->IsBoxed(index); }
    Algorithm algorithm() const noexcept {
      return boxed() ? box()->algorithm() : Algorithm::kTokenBucket;
    }
    Box* box() const noexcept {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a slot's word is a time or a box
      return reinterpret_cast<Box*>(bucket->slots[index].word);
    }
    void set_box(Box* box) const noexcept {
      bucket->slots[index].word = reinterpret_cast<std::int64_t>(box);
    }
  };
  struct Counts {
    std::uint64_t allowed = 0;
    std::uint64_t limited = 0;
    std::uint64_t created = 0;
    std::uint64_t evicted = 0;
    std::uint64_t evicted_active = 0;
    std::uint64_t contended = 0;
  };
  /// What has changed since it was last saved.
  struct Changes {
    std::vector<Place> places;           ///< those whose slots are marked; some may be free again
    std::vector<Fingerprint> forgotten;  ///< by Reset, before what the places now hold
    std::atomic<std::uint64_t>* shards = nullptr;  ///< has `bit` set while there is anything
    std::uint64_t bit = 0;
  };
  /// With its text, because fingerprints change with the table's secret.
  struct OwnQuota {
    std::string key;
    Quota quota;
  };
  using Quotas = std::unordered_map<Fingerprint, OwnQuota, FingerprintHash>;

  Shard() = default;
  ~Shard() { Clear(); }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Takes zeroed buckets, and an array with a text for each slot, or null if none are kept; both
  /// must outlive the shard.
  void Adopt(Bucket* buckets, std::uint32_t count, KeyText** texts) noexcept {
    buckets_ = buckets;
    bucket_count_ = count;
    texts_ = texts;
  }

  /// The home of a key, out of `count` buckets.
  static std::uint64_t HomeIndex(const Fingerprint& f, std::uint32_t count) noexcept {
    return (f.Spread() >> 32) * count >> 32;
  }
  Bucket* HomeOf(const Fingerprint& f) const noexcept {
    return buckets_ + HomeIndex(f, bucket_count_);
  }

  /// Finds a key and marks it used.
  Place Find(const Fingerprint& f) noexcept { return FindFrom(HomeOf(f), f); }
  /// As above, for a caller that knows the key's home.
  Place FindFrom(Bucket* home, const Fingerprint& f) noexcept {
    Place place{home, home->Likely(f.high)};
    if (!place.Holds(f)) [[unlikely]] {
      place = Probe(home, f);
      if (!place) return {};
    }
    Touch(place);
    return place;
  }
  /// As above, for a key whose state is in its slot, at the likely place only: the fastest
  /// lookup.
  Place FindInlineFrom(Bucket* home, const Fingerprint& f) noexcept {
    const Place place{home, home->Likely(f.high)};
    if (!place.HoldsInline(f)) [[unlikely]]
      return {};
    Touch(place);
    return place;
  }
  /// FindFrom, not inlined, for callers that have already checked the likely place.
  Place FindElsewhere(Bucket* home, const Fingerprint& f) noexcept;

  /// `now`, or the latest time this shard has seen if that is slightly later: a thread that was
  /// preempted between reading the clock and locking must not decide with an old time, nor charge a
  /// key that was dropped in the meantime because it was fresh. A clock that really goes back, by
  /// more than that, is followed.
  Nanos Later(Nanos now) noexcept {
    constexpr Nanos kLostCore = 1'000'000'000;
    if (now < latest_ && now > latest_ - kLostCore) return latest_;
    latest_ = now;
    return now;
  }

  /// Must be called when a key's state has changed.
  void MarkChanged(const Place& place) {
    if (changes == nullptr) [[likely]]
      return;
    if ((place.bucket->stamp[place.index] & Bucket::kChanged) == 0) AddChange(place);
  }
  /// Must be called before a key is reset.
  void MarkForgotten(const Fingerprint& f);

  bool full() const noexcept { return live_ == bucket_count_ * Bucket::kSlots; }

  /// Takes a free slot for a key that Find did not find. Requires !full().
  Place Insert(const Fingerprint& f, bool boxed) noexcept;
  /// Keeps the text of a key that has no box, if texts are kept.
  void SetText(const Place& place, std::string_view key) {
    if (texts_ != nullptr) TextAt(place) = KeyText::Make(key);
  }
  /// Moves a key's state out of its slot, into a box that has its text as well.
  void MoveInto(const Place& place, Box* box) noexcept;
  /// The key's text; empty if it is not kept.
  std::string_view TextOf(const Place& place) const noexcept;
  /// Prefetches what reading the keys at `places` needs, so that the cache misses overlap.
  void Prefetch(std::span<const Place> places) const noexcept;
  void Erase(const Place& place) noexcept;
  /// Erases all; returns how many.
  std::uint32_t Clear() noexcept;

  /// A key to evict: the first fresh one found, or else the least recently used of those examined
  /// (all, in a small shard). None of `pinned`. Continues round the shard from call to call.
  struct Victim {
    Place place;
    bool fresh = false;
  };
  Victim FindVictim(Nanos now, std::span<const Fingerprint> pinned) noexcept;

  /// True if this key is indistinguishable from one never seen.
  static bool IsFresh(const Place& place, Nanos now) noexcept;

  /// Calls `visit(place)` for each key; it may erase that key.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (std::uint32_t b = 0; b < bucket_count_; ++b) {
      for (int i = 0; i < Bucket::kSlots; ++i) {
        if (buckets_[b].Has(i)) visit(Place{buckets_ + b, i});
      }
    }
  }

  // In order of use: a plain charge touches only the first cache line.
  SpinLock lock;

 private:
  Bucket* Next(Bucket* bucket) const noexcept {
    return ++bucket == buckets_ + bucket_count_ ? buckets_ : bucket;
  }

  void Touch(const Place& place) const noexcept {
    std::uint8_t& stamp = place.bucket->stamp[place.index];
    if ((stamp & Bucket::kEpoch) != epoch_) {
      stamp = static_cast<std::uint8_t>((stamp & Bucket::kChanged) | epoch_);
    }
  }
  /// Searches all places where a key may live.
  Place Probe(Bucket* home, const Fingerprint& f) const noexcept;

  KeyText*& TextAt(const Place& place) const noexcept {
    return texts_[(place.bucket - buckets_) * Bucket::kSlots + place.index];
  }
  void FreeHeap(const Place& place) noexcept;
  void AddChange(const Place& place);

  std::uint32_t bucket_count_ = 0;
  Bucket* buckets_ = nullptr;
  Nanos latest_ = 0;
  std::uint8_t epoch_ = 0;  // advances with inserts; the age of a stamp is epoch_ - stamp

 public:
  /// Keys' own quotas; null if there are none.
  std::unique_ptr<Quotas> quotas;
  std::unique_ptr<Changes> changes;  ///< null: they are not tracked
  Counts counts;

 private:
  KeyText** texts_ = nullptr;  // of each slot; null if none are kept
  std::uint32_t live_ = 0;
  std::uint32_t hand_ = 0;  // the bucket where FindVictim continues
  std::uint32_t inserts_ = 0;
};

static_assert(sizeof(Shard) == 128);

/// Holds a shard's lock, and counts the times when it had to wait for it.
class ShardHold {
 public:
  explicit ShardHold(Shard& shard) : shard_(shard) {
    if (shard.lock.try_lock()) [[likely]]
      return;
    shard.lock.lock();
    ++shard.counts.contended;
  }
  ~ShardHold() { shard_.lock.unlock(); }
  ShardHold(const ShardHold&) = delete;
  ShardHold& operator=(const ShardHold&) = delete;

 private:
  Shard& shard_;
};

}  // namespace weir::engine
