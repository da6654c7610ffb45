#include "protocol/grpc/quota_bucket.h"

#include <algorithm>
#include <utility>

#include "limiter/assignments.h"

namespace weir::grpc {
namespace {

using limiter::kUnlimitedPerSecond;

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kTtl = std::chrono::nanoseconds(kAssignmentTtl).count();
constexpr Nanos kAhead = std::chrono::nanoseconds(kPaidAhead).count();
// An assignment this close to its end may already have ended at the Envoy when the next one
// arrives, which is then a new one, with a full bucket.
constexpr Nanos kUncertain = kSecond / 2;
// How much too late an Envoy may stop.
constexpr Nanos kDelivery = kSecond / 4;
constexpr int kAttempts = 4;
// Rates are below 10^9 and spans below 5 s, so products stay below 2^63.
constexpr std::int64_t kMostPerSecond = kUnlimitedPerSecond - 1;
constexpr std::int64_t kMostRemaining = 2 * kUnlimitedPerSecond;

std::int64_t CeilTokens(std::int64_t billionths) noexcept {
  return billionths <= 0 ? 0 : (billionths - 1) / kSecond + 1;
}

}  // namespace

void QuotaBucket::Report(Nanos now, std::chrono::seconds elapsed, std::uint64_t requests) noexcept {
  if (requests > 0) heard_ = now;
  if (elapsed.count() < 1) return;
  const std::uint64_t per_second = requests / static_cast<std::uint64_t>(elapsed.count());
  demand_ = static_cast<std::int64_t>(std::min<std::uint64_t>(per_second, kMostPerSecond - 1)) + 1;
}

bool QuotaBucket::Idle(Nanos now) const noexcept {
  return now - heard_ > std::chrono::nanoseconds(kIdleAfter).count();
}

/// Counts what has flowed into the Envoy's bucket since the last time.
void QuotaBucket::Settle(Nanos now) noexcept {
  const Nanos since = settled_;
  settled_ = now;
  if (rate_ == 0 || rate_ == kUnlimitedPerSecond || pushed_ == 0) return;
  const Nanos end = pushed_ + kTtl + kDelivery;
  const Nanos span = std::min(now, end) - since;
  if (span > 0) prepaid_ -= rate_ * std::min<Nanos>(span, kTtl + kDelivery);
  if (now <= end) return;
  rate_ = 0;
  prepaid_ = std::min<std::int64_t>(prepaid_, 0);
}

bool QuotaBucket::Lives(Nanos now) const noexcept {
  return rate_ > 0 && rate_ < kUnlimitedPerSecond && pushed_ != 0 &&
         now - pushed_ <= kTtl - kUncertain;
}

/// A little more each second, and a part less while others find little left: so the Envoys that
/// share a limit converge to equal shares.
std::int64_t QuotaBucket::Target(Nanos /*now*/) const noexcept {
  const std::int64_t most = std::clamp<std::int64_t>(facts_.per_second, 1, kMostPerSecond);
  const std::int64_t want = demand_ == 0 ? most : std::min(most, demand_ + demand_ / 2);
  if (!lives_) return std::min(want, std::max<std::int64_t>(facts_.remaining / 4, 1));
  if (want < rate_) return want;
  if (scarce_) return rate_ - (rate_ > 1 ? std::max<std::int64_t>(rate_ / 16, 1) : 0);
  const std::int64_t step = std::max({most / 16, facts_.remaining / 8, std::int64_t{1}});
  return std::min(want, rate_ + step);
}

/// The inflow until the next push, and a full bucket if it is a new one. A bucket that is made
/// larger keeps its part, so it gains no more than the difference.
std::int64_t QuotaBucket::CostOf(std::int64_t rate) const noexcept {
  const std::int64_t grown = lives_ ? std::max<std::int64_t>(rate - rate_, 0) : rate;
  return CeilTokens(rate * kAhead - prepaid_) + grown;
}

QuotaBucket::Ask QuotaBucket::Begin(Nanos now) noexcept {
  Settle(now);
  lives_ = Lives(now);
  attempts_ = 0;
  asked_ = {};
  if (known_ && facts_.limited && facts_.assignable) {
    asked_.rate = Target(now);
    asked_.cost = CostOf(asked_.rate);
  }
  return asked_;
}

std::optional<QuotaBucket::Ask> QuotaBucket::OnAnswer(Nanos now, const QuotaFacts& facts,
                                                      bool granted) noexcept {
  known_ = true;
  facts_ = facts;
  facts_.remaining = std::clamp<std::int64_t>(facts.remaining, 0, kMostRemaining);
  if (!facts_.limited) {
    rate_ = kUnlimitedPerSecond;
    prepaid_ = 0;
    return std::nullopt;
  }
  if (!facts_.assignable) {
    rate_ = 0;
    return std::nullopt;
  }
  if (asked_.rate == 0) {  // the limit that applies is known now
    if (rate_ == kUnlimitedPerSecond) rate_ = 0;
    asked_.rate = Target(now);
    asked_.cost = CostOf(asked_.rate);
    return asked_;
  }
  if (granted || asked_.cost == 0) {
    if (lives_ && !Lives(now)) return AskForNew(now);
    const std::int64_t grown =
        lives_ ? std::max<std::int64_t>(asked_.rate - rate_, 0) : asked_.rate;
    prepaid_ += std::max<std::int64_t>(asked_.cost - grown, 0) * kSecond;
    rate_ = asked_.rate;
    scarce_ = facts_.remaining < std::max<std::int64_t>(rate_ / 4, 1);
    return std::nullopt;
  }
  scarce_ = true;
  const auto less = ++attempts_ < kAttempts && !facts.single_attempt ? Less(facts_) : std::nullopt;
  if (less) {
    asked_ = {*less, CostOf(*less)};
    return asked_;
  }
  rate_ = 0;
  prepaid_ = std::min<std::int64_t>(prepaid_, 0);
  return std::nullopt;
}

/// The answer came so late that the Envoy will take the assignment for a new one, with a full
/// bucket, which was not charged. The charge so far counts towards it.
QuotaBucket::Ask QuotaBucket::AskForNew(Nanos now) noexcept {
  Settle(now);
  lives_ = false;
  prepaid_ += asked_.cost * kSecond;
  asked_.cost = CostOf(asked_.rate);
  return asked_;
}

/// What to try after a refusal: the rate so far, else what is left.
std::optional<std::int64_t> QuotaBucket::Less(const QuotaFacts& facts) const noexcept {
  if (lives_ && asked_.rate > rate_) return rate_;
  const std::int64_t left = facts.remaining * kSecond + std::min<std::int64_t>(prepaid_, 0);
  const std::int64_t fits = left / (lives_ ? kAhead : kAhead + kSecond);
  const std::int64_t rate = fits < asked_.rate ? fits : asked_.rate / 2;
  return rate < 1 ? std::nullopt : std::optional(rate);
}

std::int64_t QuotaBucket::Abandon(Nanos now) noexcept {
  Settle(now);
  const std::int64_t rate = std::exchange(rate_, 0);
  if (rate == 0 || rate == kUnlimitedPerSecond) return 0;
  const Nanos left = std::max<Nanos>(pushed_ + kTtl + kDelivery - now, 0);
  return CeilTokens(rate * left - std::exchange(prepaid_, 0));
}

}  // namespace weir::grpc
