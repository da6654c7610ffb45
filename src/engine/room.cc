// How Table stays within max_keys: which key makes room for a new one.

#include <algorithm>
#include <mutex>
#include <thread>

#include "engine/table.h"

namespace weir::engine {

bool Table::ReserveKey() noexcept {
  std::size_t size = size_.load(std::memory_order_relaxed);
  while (size < options_.max_keys) {
    if (size_.compare_exchange_weak(size, size + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

// Afterwards `shard` has a free slot and size_ counts the key that will use it: a new place, or
// that of an evicted key.
bool Table::MakeRoom(Shard& shard, const Call& call) {
  if (!shard.full() && ReserveKey()) return true;
  const Shard::Victim victim = shard.FindVictim(call.now, call.pinned);
  // Losing a fresh key elsewhere is better than losing one in use here.
  constexpr std::size_t kTries = 8;
  const bool spare_it = !victim.fresh && !shard.full();
  if (spare_it && EvictElsewhere(call.now, /*fresh_only=*/true, kTries)) return true;
  if (victim.place) {
    Evict(shard, victim);
    return true;
  }
  // Nothing here to evict. The keys are elsewhere, unless this call alone holds as many as allowed.
  // Other calls may hold all the rest, and wait for this one: so it does not wait indefinitely.
  constexpr int kRounds = 64;
  for (int i = 0; i < kRounds && !shard.full() && call.pinned.size() < options_.max_keys; ++i) {
    if (EvictElsewhere(call.now, /*fresh_only=*/false, shard_count_) || ReserveKey()) return true;
    std::this_thread::yield();
  }
  return false;
}

// Takes other shards' locks only if they are free: a thread waiting for a lock may hold another.
bool Table::EvictElsewhere(Nanos now, bool fresh_only, std::size_t tries) {
  for (std::size_t i = 0; i < std::min<std::size_t>(tries, shard_count_); ++i) {
    Shard& other = shards_[rotor_.fetch_add(1, std::memory_order_relaxed) % shard_count_];
    const std::unique_lock hold(other.lock, std::try_to_lock);
    if (!hold.owns_lock()) continue;
    const Shard::Victim victim = other.FindVictim(other.Later(now), {});
    if (!victim.place || (fresh_only && !victim.fresh)) continue;
    Evict(other, victim);
    return true;
  }
  return false;
}

// The place counted in size_ passes to the new key.
void Table::Evict(Shard& shard, const Shard::Victim& victim) {
  ++shard.counts.evicted;
  if (!victim.fresh) ++shard.counts.evicted_active;
  if (options_.on_evict) {
    options_.on_evict({.key = shard.TextOf(victim.place),
                       .algorithm = victim.place.algorithm(),
                       .active = !victim.fresh});
  }
  shard.Erase(victim.place);
}

void Table::Erase(Shard& shard, const Shard::Place& place) noexcept {
  shard.Erase(place);
  size_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace weir::engine
