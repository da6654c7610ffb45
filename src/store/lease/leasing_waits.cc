// The calls of LeasingStore that let a check wait for permits which are on their way. When leases
// end with their window, the first checks of the next one find nothing, and each would be a
// separate call in addition to the one that requests permits. That one was sent before them, so its
// answer comes no later than theirs would.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/lease/leasing_call.h"
#include "store/lease/leasing_store.h"

namespace weir::store::lease {
namespace {

/// A check that has waited longer is passed on: the request or its answer may be lost.
constexpr Nanos LongestWait(Nanos term) noexcept { return term / 8; }

/// The most permits that checks may wait for, per key.
constexpr std::int64_t kMostWaiting = 1024;

}  // namespace

/// Only if an answer is likely to come soon, with enough for all that wait: for a single check, and
/// not with a region's store, which may have none for now although the home store has.
bool LeasingStore::Wait(Application& application, const Holding& holding, Nanos now) {
  const algorithm::LeaseTerms& terms = holding.terms();
  if (application.charges.size() != 1 || lends_ || terms.region != 0 || holding.share().on()) {
    return false;
  }
  if (holding.took() == 0 || holding.took() > LongestWait(terms.term)) return false;
  const store::Charge& charge = application.charges.front();
  auto found = waiting_.find(charge.key);
  const std::int64_t before = found == waiting_.end() ? 0 : found->second.cost;
  if (before + charge.cost > std::min(holding.Coming(now), kMostWaiting)) return false;
  if (found == waiting_.end()) found = waiting_.try_emplace(std::string(charge.key)).first;
  found->second.cost += charge.cost;
  found->second.all.push_back({&application, nullptr, now});
  return true;
}

/// Registers the callbacks of those that wait. Returns the callback for the rest, if there is any.
Done LeasingStore::TellWaiting(std::span<Application> batch, std::span<const std::uint32_t> places,
                               bool more, Done done) {
  const std::size_t parts = places.size() + (more ? 1 : 0);
  if (parts > 1) {
    done = [left = std::make_shared<std::size_t>(parts), last = std::move(done)] {
      if (--*left == 0) last();
    };
  }
  for (const std::uint32_t place : places) {
    std::vector<Waiting>& all = waiting_.find(batch[place].charges.front().key)->second.all;
    std::ranges::find(all, &batch[place], &Waiting::application)->done = done;
  }
  return done;
}

/// Checks that wait for this key get what is available now; the others go on to the store, or are
/// refused if it has just said that it has nothing.
void LeasingStore::EndWaits(std::string_view key, bool none_left) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  const std::vector<Waiting> all = std::move(found->second.all);
  waiting_.erase(found);
  EndWaits(all, none_left);
}

void LeasingStore::EndWaits(std::span<const Waiting> all, bool none_left) {
  const std::shared_ptr<LeasingStore*> self = self_;
  for (const Waiting& waiting : all) {
    if (*self != nullptr) {
      EndWait(waiting, none_left);
      continue;
    }
    // A callback has destroyed this.
    waiting.application->status = ShuttingDown();
    waiting.done();
  }
}

void LeasingStore::EndWait(const Waiting& waiting, bool none_left) {
  Application& application = *waiting.application;
  const store::Charge& charge = application.charges.front();
  const auto found = holdings_.find(charge.key);
  if (found != holdings_.end() && found->second.terms() == *application.terms.front()) {
    const Nanos now = clock_.Now();
    taken_.clear();
    const bool met = found->second.Take(now, charge.cost);
    if (met) CountHeld(-charge.cost);
    if (met) metrics_->spent.Add(static_cast<std::uint64_t>(charge.cost));
    if (met || none_left) {
      application.decisions.front() = found->second.Estimate(now, met);
      Answer(application, met);
      return waiting.done();
    }
  }
  auto call = std::make_unique<Call>();
  call->places.push_back(0);
  call->ours.push_back(application);
  call->ours.back().terms = {};
  call->splits.push_back(nullptr);
  call->theirs = {&application, 1};
  call->done = waiting.done;
  PassOn(std::move(call));
}

void LeasingStore::EndLateWaits(Nanos now) {
  std::vector<Waiting> late;
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    auto& [cost, all] = entry->second;
    // In order of arrival.
    const auto first = std::ranges::find_if(all, [now](const Waiting& waiting) {
      return now - waiting.since <= LongestWait(waiting.application->terms.front()->term);
    });
    for (auto one = all.begin(); one != first; ++one) {
      cost -= one->application->charges.front().cost;
      late.push_back(std::move(*one));
    }
    all.erase(all.begin(), first);
    entry = all.empty() ? waiting_.erase(entry) : std::next(entry);
  }
  EndWaits(late, false);
}

void LeasingStore::EndAllWaits() {
  std::vector<Waiting> all;
  for (auto& [key, queue] : std::exchange(waiting_, {})) {
    std::ranges::move(queue.all, std::back_inserter(all));
  }
  EndWaits(all, false);
}

}  // namespace weir::store::lease
