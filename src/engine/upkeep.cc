// The calls of Table that decide nothing: resets, keys' own quotas, statistics, listing.

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/algorithms.h"
#include "engine/table.h"

namespace weir::engine {

void Table::Reset(std::string_view key) {
  const Located at = Locate(key);
  const std::lock_guard hold(at.shard->lock);
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
    const Shard::Place place = Find(at, each.algorithm);
    if (!place) continue;
    at.shard->MarkForgotten(place.slot().fingerprint());
    Erase(*at.shard, place);
  }
}

void Table::SetQuota(std::string_view key, const Quota& quota) {
  const Located at = Locate(key);
  const std::lock_guard hold(at.shard->lock);
  if (at.shard->quotas == nullptr) at.shard->quotas = std::make_unique<Shard::Quotas>();
  at.shard->quotas->insert_or_assign(at.fingerprint, Shard::OwnQuota{std::string(key), quota});
}

void Table::ClearQuota(std::string_view key) {
  const Located at = Locate(key);
  const std::lock_guard hold(at.shard->lock);
  if (at.shard->quotas == nullptr) return;
  at.shard->quotas->erase(at.fingerprint);
  if (at.shard->quotas->empty()) at.shard->quotas.reset();
}

void Table::Adopt(const KeyHash& hash) {
  std::vector<Shard::OwnQuota> own;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    const auto quotas = std::exchange(shards_[i].quotas, nullptr);
    if (quotas == nullptr) continue;
    for (auto& [fingerprint, one] : *quotas) own.push_back(std::move(one));
  }
  hash_ = hash;
  for (const Shard::OwnQuota& one : own) SetQuota(one.key, one.quota);
}

void Table::Clear() {
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    const std::lock_guard hold(shards_[i].lock);
    if (options_.track_changes) {
      shards_[i].ForEach(
          [&](const Shard::Place& place) { shards_[i].MarkForgotten(place.slot().fingerprint()); });
    }
    size_.fetch_sub(shards_[i].Clear(), std::memory_order_relaxed);
  }
}

std::size_t Table::Sweep() {
  const Nanos read = clock_->Now();
  std::size_t dropped = 0;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    const std::lock_guard hold(shards_[i].lock);
    const Nanos now = shards_[i].Later(read);
    shards_[i].ForEach([&](const Shard::Place& place) {
      if (!Shard::IsFresh(place, now)) return;
      Erase(shards_[i], place);
      ++dropped;
    });
  }
  return dropped;
}

EngineStats Table::stats() const {
  EngineStats sum;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    const std::lock_guard hold(shards_[i].lock);
    const Shard::Counts& counts = shards_[i].counts;
    sum.allowed += counts.allowed;
    sum.limited += counts.limited;
    sum.created += counts.created;
    sum.evicted += counts.evicted;
    sum.evicted_active += counts.evicted_active;
    sum.contended += counts.contended;
  }
  sum.hits = sum.allowed + sum.limited;
  return sum;
}

/// Keys are only copied under the lock: whatever the visitor does, no check waits for it.
void Table::Visit(const std::function<void(const KeyView&)>& visitor) const {
  struct Seen {
    std::size_t end;  // in the texts, which are concatenated
    Algorithm algorithm;
  };
  std::string texts;
  std::vector<Seen> seen;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    texts.clear();
    seen.clear();
    {
      const std::lock_guard hold(shards_[i].lock);
      shards_[i].ForEach([&](const Shard::Place& place) {
        texts += shards_[i].TextOf(place);
        seen.push_back({texts.size(), place.algorithm()});
      });
    }
    std::size_t begin = 0;
    for (const Seen& one : seen) {
      visitor({std::string_view(texts).substr(begin, one.end - begin), one.algorithm});
      begin = one.end;
    }
  }
}

}  // namespace weir::engine
