#include "store/lease/permit_stock.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "store/lease/drift.h"

namespace weir::store::lease {
namespace {

// No node keeps more than one in this many of the limit's permits in stock.
constexpr std::int64_t kStockParts = 16;

}  // namespace

std::optional<StockedPermit> PermitStock::Take(Nanos now, Nanos rest) {
  const auto lasts = [&](const StockedPermit& permit) { return permit.until - rest >= now; };
  const auto found = std::ranges::find_if(permits_, lasts);
  if (found == permits_.end()) return std::nullopt;
  const StockedPermit permit = *found;
  permits_.erase(found);
  return permit;
}

std::int64_t PermitStock::Want() const noexcept {
  if (failed_) return 1;
  const std::int64_t expected = demand_.Expected();
  const std::int64_t most = std::min(terms_.quota.limit() / kStockParts, kMostAsked);
  return std::max<std::int64_t>(std::min(expected + expected / 4, most), 1);
}

bool PermitStock::ShouldAsk(Nanos now) const noexcept {
  if (!leased() || asking_ || now < ask_after_) return false;
  // A quarter is left to hand out while the store answers. Expired permits do not help.
  const auto lasts = [now](const StockedPermit& permit) { return permit.until >= now; };
  const bool all = permits_.empty() || lasts(permits_.front());
  const auto usable =
      all ? static_cast<std::int64_t>(held()) : std::ranges::count_if(permits_, lasts);
  return usable <= Want() / 4;
}

bool PermitStock::OnGrant(const Granted& granted, const Flaws& flaws) {
  const auto& [names, standing, sent, now, pause] = granted;
  asking_ = failed_ = false;
  known_ = standing;
  if (static_cast<std::int64_t>(names.size()) < asked_) ask_after_ = now + pause;
  Nanos until = (flaws.from_receipt ? now : sent) + NodeTime(terms_.term);
  if (flaws.permit_outlived) until = std::numeric_limits<Nanos>::max();
  if (until < now) return false;
  for (const std::int64_t name : names) permits_.push_back({name, until});
  return true;
}

void PermitStock::Failed(Nanos now) noexcept {
  asking_ = false;
  failed_ = true;
  ask_after_ = now + terms_.term / 2;
}

Decision PermitStock::Estimate(const StockedPermit& permit) const noexcept {
  Decision decision;
  decision.limit = terms_.quota.limit();
  decision.remaining =
      std::min(decision.limit, known_.remaining + static_cast<std::int64_t>(held()));
  decision.reset_after = known_.reset_after;
  decision.lease = permit.name;
  return decision;
}

std::vector<std::int64_t> PermitStock::Expire(Nanos now) {
  std::vector<std::int64_t> names;
  std::erase_if(permits_, [&](const StockedPermit& permit) {
    if (permit.until >= now) return false;
    names.push_back(permit.name);
    return true;
  });
  return names;
}

std::vector<std::int64_t> PermitStock::Surrender() {
  std::vector<std::int64_t> names;
  for (const StockedPermit& permit : std::exchange(permits_, {})) names.push_back(permit.name);
  return names;
}

}  // namespace weir::store::lease
