#include "oracle.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "algorithm/state.h"

namespace weir::simulation {

std::optional<std::string> FirstRefused(const Quota& quota,
                                        const std::vector<Admission>& admissions) {
  std::vector<std::uint8_t> bytes;
  algorithm::State state;
  for (std::size_t i = 0; i < admissions.size(); ++i) {
    const std::uint32_t needed = algorithm::CapacityForAcquire(quota, state);
    if (bytes.size() < needed) bytes.resize(2 * std::size_t{needed});
    state.data = bytes.data();
    state.capacity = static_cast<std::uint32_t>(bytes.size());
    const auto& [time, cost] = admissions[i];
    if (cost < 0) {
      static_cast<void>(algorithm::Refund(quota, state, time, -cost));
      continue;
    }
    if (algorithm::Acquire(quota, state, time, cost).allowed()) continue;
    return "admission " + std::to_string(i + 1) + " of " + std::to_string(cost) + " at " +
           std::to_string(time) + " exceeds " + quota.ToString();
  }
  return std::nullopt;
}

void Ledger::Charged(std::string_view key, const Quota& quota, Admission charge) {
  auto found = keys_.find(key);
  if (found == keys_.end()) {
    found = keys_.emplace(key, Key{.quota = quota, .changed = false, .charges = {}}).first;
  }
  if (found->second.quota != quota) found->second.changed = true;
  found->second.charges.push_back(charge);
}

void Ledger::Returned(std::string_view key, Nanos at, std::int64_t count) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  for (Admission& charge : std::views::reverse(found->second.charges)) {
    if (charge.time < at || count == 0) return;
    if (charge.time > at) continue;
    const std::int64_t taken = std::min(charge.cost, count);
    charge.cost -= taken;
    count -= taken;
  }
}

std::optional<std::string> Ledger::FirstRefused() const {
  for (const auto& [name, key] : keys_) {
    if (key.changed || key.quota.algorithm() == Algorithm::kConcurrency) continue;
    std::vector<Admission> kept;
    std::ranges::copy_if(key.charges, std::back_inserter(kept),
                         [](const Admission& charge) { return charge.cost != 0; });
    if (auto refused = simulation::FirstRefused(key.quota, kept)) return refused;
  }
  return std::nullopt;
}

void InFlight::Admitted(std::int64_t name, Nanos time, std::int64_t cost) {
  permits_[name] = {.from = time, .cost = cost};
}

void InFlight::Claimed(std::int64_t name) {
  if (const auto found = permits_.find(name); found != permits_.end()) found->second.claimed = true;
}

void InFlight::Done(std::int64_t name, Nanos time) {
  const auto found = permits_.find(name);
  if (found != permits_.end() && !found->second.done) found->second.done = time;
}

void InFlight::Released(std::int64_t name, Nanos time) {
  const auto found = permits_.find(name);
  if (found != permits_.end() && !found->second.released) found->second.released = time;
}

std::optional<std::string> InFlight::FirstTooMany(const Quota& quota) const {
  std::vector<Admission> changes;
  for (const auto& [name, permit] : permits_) {
    const Nanos ends = permit.from + quota.window().count();
    changes.push_back({permit.from, permit.cost});
    const std::optional<Nanos>& over = permit.claimed ? permit.done : permit.released;
    changes.push_back({std::min(over.value_or(ends), ends), -permit.cost});
  }
  // What ends at a time makes room for what begins at that time.
  std::ranges::sort(changes, {},
                    [](const Admission& one) { return std::pair(one.time, one.cost); });
  std::int64_t now = 0;
  for (const Admission& change : changes) {
    now += change.cost;
    if (now <= quota.limit()) continue;
    return std::to_string(now) + " permits in flight at " + std::to_string(change.time) +
           " exceed " + quota.ToString();
  }
  return std::nullopt;
}

}  // namespace weir::simulation
