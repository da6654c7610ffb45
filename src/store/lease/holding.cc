#include "store/lease/holding.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "store/lease/drift.h"

namespace weir::store::lease {
namespace {

// More grants than this mean that requests ran wild; the oldest then counts as spent.
constexpr std::size_t kMaxLots = 8;

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

}  // namespace

Holding::Holding(const algorithm::LeaseTerms& terms, Nanos now, std::uint64_t epoch)
    : terms_(terms), demand_(half(), now), share_(terms.rate, epoch, now) {}

void Holding::Note(Nanos now, std::int64_t cost) {
  demand_.Note(now, std::min(cost, terms_.quota.limit()));
}

bool Holding::idle(Nanos now) const noexcept {
  return !asking_ && held_ == 0 && now - demand_.noted() > 2 * terms_.term;
}

std::int64_t Holding::Available(Nanos now, Nanos rest) const noexcept {
  std::int64_t sum = 0;
  for (const Lot& lot : lots_) {
    if (lot.until - rest >= now) sum += lot.left;
  }
  return sum;
}

bool Holding::Take(Nanos now, std::int64_t cost, Nanos rest, std::uint32_t position,
                   std::vector<Taken>& taken) {
  if (held_ < cost || Available(now, rest) < cost) return false;
  held_ -= cost;
  for (Lot& lot : lots_) {
    if (lot.until - rest < now || lot.left == 0 || cost == 0) continue;
    const std::int64_t part = std::min(lot.left, cost);
    lot.left -= part;
    lot.spent += part;
    cost -= part;
    taken.push_back({position, lot.id, part, lot.until});
  }
  return true;
}

bool Holding::Take(Nanos now, std::int64_t cost) {
  for (Lot& lot : lots_) {
    if (lot.until < now || lot.left == 0) continue;
    if (lot.left < cost) break;
    lot.left -= cost;
    lot.spent += cost;
    held_ -= cost;
    return true;
  }
  std::vector<Taken> parts;
  return Take(now, cost, 0, 0, parts);
}

bool Holding::Hold(Nanos now, std::int64_t cost, Nanos rest, std::uint32_t position,
                   std::vector<Taken>& taken) {
  const std::size_t first = taken.size();
  if (!Take(now, cost, rest, position, taken)) return false;
  for (Taken& part : std::span(taken).subspan(first)) {
    Lot& lot = *Find(part.lot);
    lot.spent -= part.count;
    lot.pending += part.count;
    part.held = true;
  }
  return true;
}

void Holding::Spend(const Taken& held) noexcept {
  Lot* const lot = Find(held.lot);
  if (lot == nullptr) return;
  const std::int64_t part = std::min(lot->pending, held.count);
  lot->pending -= part;
  lot->spent += part;
}

Lot* Holding::Find(std::uint64_t id) noexcept {
  const auto found = std::ranges::find(lots_, id, &Lot::id);
  return found == lots_.end() ? nullptr : &*found;
}

Taken Holding::Lend(Nanos now, std::int64_t want, Nanos rest) {
  demand_.Lend(now, std::min(want, terms_.quota.limit()));
  std::vector<Taken> taken;
  for (std::int64_t cost = std::min(want, held_); cost > 0; cost /= 2) {
    if (!Take(now, cost, rest, 0, taken)) continue;
    // What is lent must come from a single grant, which names it.
    for (std::size_t i = 1; i < taken.size(); ++i) PutBack(now, taken[i]);
    Lot& lot = *Find(taken.front().lot);
    lot.spent -= taken.front().count;
    lot.lent += taken.front().count;
    taken.front().lent = true;
    return taken.front();
  }
  return {};
}

std::int64_t Holding::PutBack(Nanos now, const Taken& taken) {
  Lot* const lot = Find(taken.lot);
  if (lot == nullptr || lot->until < now) return 0;
  std::int64_t& from = taken.lent ? lot->lent : taken.held ? lot->pending : lot->spent;
  const std::int64_t part = std::min(from, taken.count);
  from -= part;
  lot->left += part;
  held_ += part;
  return part;
}

std::int64_t Holding::Refund(Nanos now, std::int64_t cost) {
  const std::int64_t asked = cost;
  for (const Lot& lot : lots_) {
    if (cost > 0) cost -= PutBack(now, {0, lot.id, cost, lot.until});
  }
  return asked - cost;
}

bool Holding::ShouldAsk(Nanos now, Nanos rest) const noexcept {
  // A quarter of a lease is left to spend while the store answers. Expired permits that are not yet
  // counted as lost do not help.
  if (!leased() || asking_ || now < ask_after_) return false;
  // The newest first, which nearly always has enough.
  std::int64_t left = Want(now, rest) / 4;
  for (auto lot = lots_.rbegin(); lot != lots_.rend(); ++lot) {
    if (lot->until - rest >= now) left -= lot->left;
    if (left < 0) return false;
  }
  return true;
}

std::int64_t Holding::Want(Nanos now, Nanos rest) const noexcept {
  const std::int64_t taken = demand_.Expected();
  std::int64_t want = taken + taken / 4;
  // What cannot be spent before the window ends would be lost. Slightly more than is likely to be
  // spent until then saves another request just before the end.
  const Nanos lasts = half() + half() / 4;
  if (window_ends_ > now && window_ends_ - now < lasts) {
    const double part = static_cast<double>(window_ends_ - now) / static_cast<double>(lasts);
    want = static_cast<std::int64_t>(static_cast<double>(want) * part * 9 / 8) + 2;
    want -= Available(now, rest);
  }
  // Permits granted in a lost answer are lost until the window ends or the bucket has refilled:
  // half of the limit at most.
  const std::int64_t limit = terms_.quota.limit();
  return std::clamp<std::int64_t>(want, 0, limit - limit / 2);
}

bool Holding::OnGrant(const Granted& granted, const Flaws& flaws) {
  const auto& [grant, id, want, sent, now, pause, patient] = granted;
  asking_ = false;
  took_ = std::max<Nanos>(now - sent, 1);
  answered_ = now;
  known_ = grant.decision;
  const bool short_of = grant.granted < want;
  ask_after_ = short_of ? now + pause : now;
  dry_until_ = short_of ? ask_after_ : 0;
  if (grant.granted == 0) {
    GrantedNone(granted);
    return true;
  }
  const Nanos term = SpendFor(terms_, grant.decision);
  const Nanos lasts = flaws.past_window ? terms_.term : term;
  // Permits lent by a region end when it says; the window they were charged in is not known here.
  const Nanos ends = terms_.region == 0 ? algorithm::WindowEndsIn(terms_.quota, grant.decision)
                                        : (term < terms_.term ? term : kNever);
  if (ends < kNever) window_ends_ = sent + ends;
  Lot lot{.id = id,
          .left = grant.granted,
          .at = grant.at,
          .until = (flaws.from_receipt ? now : sent) + NodeTime(lasts)};
  if (flaws.after_term) lot.until = kNever;
  if (lasts <= 0 || lot.until < now) {
    // The next answer may take as long: in the meantime the store decides.
    ask_after_ = std::max(ask_after_, now + half());
    return false;
  }
  if (lots_.size() == kMaxLots) {
    held_ -= lots_.front().left;
    lots_.erase(lots_.begin());
  }
  lots_.push_back(lot);
  held_ += lot.left;
  return true;
}

void Holding::GrantedNone(const Granted& granted) noexcept {
  const Decision& decision = granted.grant.decision;
  if (decision.allowed()) {
    // It has some and leases none, since the key is being moved: it decides every check.
    dry_until_ = 0;
    ask_after_ = granted.now + granted.pause;
    return;
  }
  const Nanos some_after = decision.retry_after.count();
  const Nanos pause =
      granted.patient ? granted.pause : std::min<Nanos>(2 * granted.pause, some_after);
  ask_after_ = dry_until_ = granted.now + pause;
}

void Holding::Failed(Nanos now) noexcept {
  asking_ = false;
  ask_after_ = now + half();
}

Decision Holding::EstimateDry(Nanos now) const noexcept {
  Decision decision;
  decision.verdict = Verdict::kLimited;
  decision.limit = terms_.quota.limit();
  decision.remaining = std::min(decision.limit, held_);
  decision.retry_after = std::chrono::nanoseconds(std::max<Nanos>(dry_until_ - now, 1));
  decision.reset_after = std::max(known_.reset_after, decision.retry_after);
  return decision;
}

std::int64_t Holding::Expire(Nanos now) {
  std::int64_t lost = 0;
  std::erase_if(lots_, [&](const Lot& lot) {
    if (lot.until >= now) return false;
    lost += lot.left;
    return true;
  });
  held_ -= lost;
  return lost;
}

std::vector<Lot> Holding::Surrender() {
  held_ = 0;
  return std::exchange(lots_, {});
}

}  // namespace weir::store::lease
