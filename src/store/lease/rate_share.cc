#include "store/lease/rate_share.h"

#include <algorithm>
#include <utility>

#include "store/lease/drift.h"

namespace weir::store::lease {
namespace {

using algorithm::kShareUnits;

// A share is worth its calls from this many checks in half a term.
constexpr std::int64_t kShareFrom = 8;
// The most counted for one check in the estimate of demand: sums cannot overflow.
constexpr std::int64_t kMostCost = std::int64_t{1} << 32;

}  // namespace

Nanos AskEvery(const algorithm::RateTerms& terms) noexcept { return terms.term * 7 / 16; }

Quota UnitsQuota(const algorithm::RateTerms& terms) {
  return *Quota::Concurrency(kShareUnits, std::chrono::nanoseconds(terms.term));
}

Quota WantsQuota(const algorithm::RateTerms& terms) {
  constexpr std::int64_t kBuckets = 8;
  return *Quota::SlidingCounter(kMaxLimit, std::chrono::nanoseconds(AskEvery(terms)), kBuckets);
}

RateShare::RateShare(const algorithm::RateTerms& terms, std::uint64_t epoch, Nanos now)
    : terms_(terms),
      scale_(Int128{kDriftParts + 1} * terms.period * kShareUnits),
      epoch_(epoch),
      filled_(now),
      slot_began_(now),
      noted_(now) {}

void RateShare::Note(Nanos now, std::int64_t cost) {
  noted_ = now;
  if (const Nanos since = now - slot_began_; since >= half()) {
    const bool next = since < 2 * half();
    cost_before_ = next ? cost_ : 0;
    busy_ = next && checks_ >= kShareFrom;
    cost_ = checks_ = 0;
    slot_began_ = next ? slot_began_ + half() : now;
  }
  ++checks_;
  cost_ += std::min(cost, kMostCost);
  if (checks_ >= kShareFrom) busy_ = true;
}

std::int64_t RateShare::UnitsAt(Nanos now) const noexcept {
  std::int64_t units = 0;
  for (const Reserved& one : reserved_) units += one.until >= now ? one.units : 0;
  return units;
}

double RateShare::PerSecond(Nanos now) const noexcept {
  if (!on()) return 0;
  constexpr double kSecond = 1e9;
  const double whole = static_cast<double>(terms_.refill) / static_cast<double>(terms_.period);
  return whole * kSecond * static_cast<double>(UnitsAt(now)) / static_cast<double>(kShareUnits);
}

/// How much the reserved units let the bucket hold.
Int128 RateShare::Cap() const noexcept {
  return Int128{terms_.burst} * units_ * (kDriftParts + 1) * terms_.period;
}

/// What no longer fits is lost; permits held for checks that do not fit are void.
void RateShare::Fit() noexcept {
  const Int128 room = Cap() - pending_ * scale_;
  if (room < 0) {
    pending_ = 0;
    ++epoch_;
    level_ = 0;
    return;
  }
  level_ = std::min(level_, room);
}

void RateShare::FillTo(Nanos now) noexcept {
  if (now <= filled_) return;
  const Nanos since = std::min(now - filled_, terms_.term);
  filled_ = now;
  level_ += Int128{since} * kDriftParts * terms_.refill * units_;
  Fit();
}

void RateShare::Fill(Nanos now) {
  while (!reserved_.empty() && reserved_.front().until < now) {
    FillTo(reserved_.front().until);
    units_ -= reserved_.front().units;
    reserved_.erase(reserved_.begin());
    Fit();
  }
  FillTo(now);
}

bool RateShare::Take(Nanos now, std::int64_t cost) {
  if (reserved_.empty()) return false;
  Fill(now);
  if (cost > terms_.burst || level_ < cost * scale_) return false;
  level_ -= cost * scale_;
  return true;
}

std::uint64_t RateShare::Hold(Nanos now, std::int64_t cost) {
  if (!Take(now, cost)) return 0;
  pending_ += cost;
  return epoch_;
}

bool RateShare::Lasts(Nanos now, std::uint64_t mark) {
  Fill(now);
  return mark == epoch_;
}

void RateShare::Spend(std::uint64_t mark, std::int64_t cost) noexcept {
  if (mark == epoch_) pending_ -= cost;
}

void RateShare::PutBack(Nanos now, std::uint64_t mark, std::int64_t cost) {
  if (!Lasts(now, mark)) return;
  pending_ -= cost;
  level_ += cost * scale_;
}

/// The units whose rate is slightly more than the demand.
std::int64_t RateShare::Want(Nanos now) const noexcept {
  const Nanos elapsed = std::clamp(now - slot_began_, half() / 8, half());
  const Int128 demand = std::max<Int128>(Int128{cost_} * half() / elapsed, cost_before_);
  const Int128 units =
      (demand + demand / 4 + 1) * kShareUnits * terms_.period / (Int128{terms_.refill} * half());
  return static_cast<std::int64_t>(std::clamp<Int128>(units, 1, kShareUnits));
}

bool RateShare::ShouldAsk(Nanos now) const noexcept {
  if (!on() || asking_ || now < ask_early_) return false;
  if (!busy_ && (!refused_ || now - *refused_ > terms_.term)) return false;
  return now >= ask_after_ || Want(now) > 2 * asked_want_;
}

/// Grants overlap, each for about half of what is wanted: the older one is released when the next
/// is requested. As many units as are released are certainly free then; units requested beyond that
/// may not be. If all nodes together want more than the whole, each is cut in proportion.
RateShare::Question RateShare::Ask(Nanos now, Nanos pause) {
  Fill(now);
  Question question;
  question.want = Want(now);
  const std::int64_t all = std::max(wants_, kShareUnits);
  // Less than the bucket needs for a single permit would be useless.
  const std::int64_t least = (kShareUnits - 1) / terms_.burst + 1;
  target_ = std::max(question.want * kShareUnits / all, 2 * least);
  const std::int64_t before = units_;
  if (pending_ == 0) question.ended = GiveUpOldest(now);
  question.keep = std::clamp<std::int64_t>(target_ - units_, 0, before - units_);
  question.more = std::clamp<std::int64_t>(target_ - units_ - question.keep, 0, (target_ + 1) / 2);
  asking_ = true;
  asked_want_ = question.want;
  asked_more_ = question.more;
  ask_after_ = now + pause;
  ask_early_ = now + half() / 4;
  return question;
}

/// Removes the oldest, granted together, unless that is everything and has a while to go.
std::vector<Reserved> RateShare::GiveUpOldest(Nanos now) {
  if (reserved_.empty()) return {};
  const Nanos until = reserved_.front().until;
  if (reserved_.back().until == until && until - now >= half() / 2) return {};
  auto later = std::ranges::upper_bound(reserved_, until, {}, &Reserved::until);
  if (later - reserved_.begin() > kMostEnded) later = reserved_.begin() + kMostEnded;
  std::vector<Reserved> oldest(reserved_.begin(), later);
  reserved_.erase(reserved_.begin(), later);
  for (const Reserved& one : oldest) units_ -= one.units;
  Fit();
  return oldest;
}

void RateShare::OnAnswer(const Answer& answer, const Flaws& flaws) {
  const auto& [granted, wants, sent, now] = answer;
  asking_ = false;
  // Nodes ask at different times: a count at any one time is slightly too high or too low.
  wants_ = wants_ == 0 ? wants : (wants_ + wants) / 2;
  Fill(now);
  Nanos until = (flaws.late_share ? now : sent) + NodeTime(terms_.term);
  if (flaws.share_outlived) until += terms_.term;
  if (until < now) return;  // lost on the way
  for (const Reserved& one : granted) {
    if (one.units <= 0) continue;
    const auto later = std::ranges::upper_bound(reserved_, until, {}, &Reserved::until);
    reserved_.insert(later, {one.units, one.name, until});
    units_ += one.units;
  }
  // There was room: request the rest without waiting.
  const bool room = asked_more_ > 0 && granted.back().units == asked_more_;
  if (room && units_ < target_ - target_ / 4) ask_after_ = ask_early_;
  if (flaws.full_share) level_ = Cap() - pending_ * scale_;
}

void RateShare::Failed(Nanos now) noexcept {
  asking_ = false;
  ask_early_ = ask_after_ = now + half() / 4;
}

std::vector<Reserved> RateShare::Surrender() {
  units_ = 0;
  Fit();
  return std::exchange(reserved_, {});
}

}  // namespace weir::store::lease
