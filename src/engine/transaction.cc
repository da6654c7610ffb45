// Table::AcquireAll: several keys, all or none. Locks the shards of all keys in order of address
// (so there is no deadlock), charges one ask after the other, and restores everything if one of
// them was refused.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "algorithm/token_bucket.h"
#include "engine/slot_state.h"
#include "engine/table.h"

namespace weir::engine {

/// One AcquireAll. Holds the shards' locks from Lock until its destruction.
class Table::Transaction {
 public:
  explicit Transaction(Table& table) : table_(table) {}
  ~Transaction() {
    for (std::size_t i = 0; i < locked_; ++i) shards_[i]->lock.unlock();
    keys_.clear();
    shards_.clear();
    pinned_.clear();
    before_.clear();
    bytes_.clear();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void Lock(std::span<const Ask> asks) {
    for (const Ask& ask : asks) {
      keys_.push_back(table_.Locate(ask.key));
      Prefetch(keys_.back());
      shards_.push_back(keys_.back().shard);
    }
    std::ranges::sort(shards_, std::less<>());
    shards_.erase(std::unique(shards_.begin(), shards_.end()), shards_.end());
    for (; locked_ < shards_.size(); ++locked_) {
      if (shards_[locked_]->lock.try_lock()) continue;
      shards_[locked_]->lock.lock();
      ++shards_[locked_]->counts.contended;
    }
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const Quota& quota = QuotaOf(i, asks[i]);
      pinned_.push_back(keys_[i].fingerprint.Under(quota.algorithm()));
    }
  }

  /// The time to charge at, the same for all: it names what was charged (algorithm/settle.h).
  Nanos Later(Nanos now) {
    for (Shard* shard : shards_) now = std::max(now, shard->Later(now));
    for (Shard* shard : shards_) now = shard->Later(now);
    return now;
  }

  bool Charge(std::span<const Ask> asks, std::span<Decision> decisions, Nanos now, Nanos reserved) {
    const Call call{now, pinned_, reserved};
    bool all = true;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const Quota& quota = QuotaOf(i, asks[i]);
      Remember(i, quota.algorithm());
      decisions[i] = reserved > 0 ? table_.Reserve(keys_[i], asks[i].key, quota, asks[i].cost, call)
                                  : table_.Charge(keys_[i], asks[i].key, quota, asks[i].cost, call);
      all = all && decisions[i].allowed();
    }
    if (!all) PutBack(asks, decisions);
    return all;
  }

 private:
  const Quota& QuotaOf(std::size_t i, const Ask& ask) const noexcept {
    return ask.quota != nullptr ? *ask.quota : table_.OwnQuotaOf(keys_[i]);
  }

  /// A key as it was before it was charged.
  struct Before {
    std::size_t ask = 0;
    Algorithm algorithm = Algorithm::kTokenBucket;
    bool existed = false;
    bool boxed = false;
    Slot slot;                 // inline states
    std::size_t bytes_at = 0;  // boxed ones, in bytes_
    std::uint32_t bytes_size = 0;
  };
  /// Reused between calls, so that a call allocates nothing.
  struct Memory {
    std::vector<Located> keys;
    std::vector<Shard*> shards;
    std::vector<Fingerprint> pinned;
    std::vector<Before> before;
    std::vector<std::uint8_t> bytes;
  };
  static Memory& OfThisThread() {
    thread_local Memory memory;
    return memory;
  }

  void Remember(std::size_t ask, Algorithm algorithm) {
    Before before;
    before.ask = ask;
    before.algorithm = algorithm;
    if (const Shard::Place place = table_.Find(keys_[ask], algorithm)) {
      before.existed = true;
      before.slot = place.slot();
      before.boxed = place.boxed();
      if (before.boxed) {
        const algorithm::State state = place.box()->state();
        before.bytes_at = bytes_.size();
        before.bytes_size = state.size;
        bytes_.insert(bytes_.end(), state.data, state.data + state.size);
      }
    }
    before_.push_back(before);
  }

  void PutBack(std::span<const Ask> asks, std::span<const Decision> decisions) {
    for (auto before = before_.rbegin(); before != before_.rend(); ++before) {
      const std::size_t i = before->ask;
      Shard& shard = *keys_[i].shard;
      if (asks[i].cost > 0 && decisions[i].allowed()) {
        --shard.counts.allowed;
        ++shard.counts.limited;
      }
      const Shard::Place place = table_.Find(keys_[i], before->algorithm);
      if (!place) continue;
      if (!before->existed) {
        --shard.counts.created;
        table_.Erase(shard, place);
      } else if (!place.boxed()) {
        place.slot() = before->slot;
      } else if (!before->boxed) {
        RestoreInline(place, before->slot);
      } else {
        Restore(place, *before);
      }
    }
  }

  /// A state that was moved into a box during the call, where it stays.
  void RestoreInline(const Shard::Place& place, const Slot& slot) {
    algorithm::State state = place.box()->state();
    state.size = 0;
    const algorithm::TokenBucketState bucket = InlineState(slot);
    algorithm::WriteTokenBucket(state, bucket);
    place.box()->set_size(state.size);
    place.slot().extra = CoarseTime(algorithm::FreshAt(bucket));
  }

  void Restore(const Shard::Place& place, const Before& before) {
    const std::uint32_t size = before.bytes_size;
    if (place.box()->capacity() < size) place.set_box(Box::Resized(place.box(), size));
    place.box()->Assign({bytes_.data() + before.bytes_at, size, size});
    place.slot().extra = before.slot.extra;
  }

  Table& table_;
  std::size_t locked_ = 0;  // how many of shards_, from the first
  Memory& memory_ = OfThisThread();
  std::vector<Located>& keys_ = memory_.keys;
  std::vector<Shard*>& shards_ = memory_.shards;
  std::vector<Fingerprint>& pinned_ = memory_.pinned;
  std::vector<Before>& before_ = memory_.before;
  std::vector<std::uint8_t>& bytes_ = memory_.bytes;
};

bool Table::AcquireAll(std::span<const Ask> asks, std::span<Decision> decisions, Nanos* at) {
  if (asks.size() == 1 && at == nullptr) {
    decisions[0] = Acquire(asks[0].key, asks[0].quota, asks[0].cost);
    return decisions[0].allowed();
  }
  return ReserveAll(asks, 0, decisions, at);
}

bool Table::ReserveAll(std::span<const Ask> asks, Nanos lasts, std::span<Decision> decisions,
                       Nanos* at) {
  Transaction transaction(*this);
  transaction.Lock(asks);
  const Nanos now = transaction.Later(clock_->Now());
  if (at != nullptr) *at = now;
  return transaction.Charge(asks, decisions, now, lasts);
}

}  // namespace weir::engine
