#include "limiter/counters.h"

#include <algorithm>
#include <utility>

namespace weir::limiter {

CounterTable::~CounterTable() {
  for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

CounterTable::Row& CounterTable::RowOf(std::uint32_t policy) noexcept {
  std::atomic<Chunk*>& place = chunks_[policy / kRowsPerChunk];
  Chunk* chunk = place.load(std::memory_order_relaxed);
  if (chunk == nullptr) {
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): out of memory ends the program
    chunk = new Chunk{};
    place.store(chunk, std::memory_order_release);
  }
  return (*chunk)[policy % kRowsPerChunk];
}

const CounterTable::Row* CounterTable::Find(std::uint32_t policy) const noexcept {
  const Chunk* chunk = chunks_[policy / kRowsPerChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[policy % kRowsPerChunk];
}

std::shared_ptr<CounterTable> Counters::Add() {
  auto table = std::make_shared<CounterTable>();
  const std::lock_guard lock(mutex_);
  tables_.push_back(table);
  return table;
}

CheckCounts Counters::Checks() const {
  CheckCounts sum;
  const std::lock_guard lock(mutex_);
  for (const auto& table : tables_) {
    sum.allowed += table->Read(CounterTable::kChecksAllowed);
    sum.limited += table->Read(CounterTable::kChecksLimited);
    sum.errors += table->Read(CounterTable::kChecksFailed);
    sum.degraded += table->Read(CounterTable::kChecksDegraded);
    sum.unmatched += table->Read(CounterTable::kChecksUnmatched);
  }
  return sum;
}

void Counters::AddUp(std::uint32_t id, PolicyCounts& sum) const {
  std::uint64_t latest = 0;
  for (const auto& table : tables_) {
    const CounterTable::Row* row = table->Find(id);
    if (row == nullptr) continue;
    const std::uint64_t at = (*row)[CounterTable::kRemainingAt].load(std::memory_order_acquire);
    if (at > latest) {
      latest = at;
      sum.remaining = (*row)[CounterTable::kRemaining].load(std::memory_order_relaxed);
    }
    const auto read = [row](CounterTable::Kind kind) {
      return (*row)[kind].load(std::memory_order_relaxed);
    };
    sum.allowed += read(CounterTable::kAllowed);
    sum.limited += read(CounterTable::kLimited);
    sum.shadow_limited += read(CounterTable::kShadowLimited);
    sum.errors += read(CounterTable::kErrors);
  }
}

std::vector<PolicyCounts> Counters::Policies(std::size_t most) const {
  const std::uint32_t count = ids_.size();
  std::vector<policy::PolicyIds::Name> names = ids_.First(std::min<std::size_t>(most, count));
  std::vector<PolicyCounts> sums;
  sums.reserve(names.size() + 1);
  const std::lock_guard lock(mutex_);
  for (std::uint32_t id = 0; id < names.size(); ++id) {
    sums.push_back({std::move(names[id].domain), std::move(names[id].policy)});
    AddUp(id, sums.back());
  }
  if (names.size() == count) return sums;
  // Their names are not needed, and there may be many.
  PolicyCounts& other = sums.emplace_back(PolicyCounts{"", "other"});
  for (auto id = static_cast<std::uint32_t>(names.size()); id < count; ++id) AddUp(id, other);
  other.remaining.reset();
  return sums;
}

}  // namespace weir::limiter
