#include "store/lease/demand.h"

#include <algorithm>
#include <utility>

namespace weir::store::lease {

void Demand::Pass(Nanos now) {
  const Nanos since = now - slot_began_;
  if (since < half_) return;
  before_ = since < 2 * half_ ? std::exchange(current_, {}) : Slot{};
  current_ = {};
  slot_began_ = since < 2 * half_ ? slot_began_ + half_ : now;
  if (before_.checks < kExactBelow) leased_ = false;
}

void Demand::Note(Nanos now, std::int64_t cost) {
  Pass(now);
  noted_ = now;
  ++current_.checks;
  current_.cost += cost;
  if (current_.checks >= kLeaseFrom) leased_ = true;
}

void Demand::Lend(Nanos now, std::int64_t cost) {
  Note(now, cost);
  current_.checks += kLeaseFrom - 1;
  leased_ = true;
}

std::int64_t Demand::Expected() const noexcept {
  return std::max({current_.cost, before_.cost, std::int64_t{1}});
}

}  // namespace weir::store::lease
