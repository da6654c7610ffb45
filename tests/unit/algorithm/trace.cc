#include "unit/algorithm/trace.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "algorithm/time_range.h"

namespace weir::algorithm {

namespace {

// The range of the clock in a trace: 1907 to 2156, to which a century can be added.
constexpr Nanos kFirst = -2'000'000'000'000'000'000;
constexpr Nanos kLast = 5'900'000'000'000'000'000;

// Mixes the dice, since the choices within a step must be independent of each other.
std::uint64_t Mix(std::uint64_t dice, std::uint64_t use) {
  dice += use * 0x9E37'79B9'7F4A'7C15;
  dice = (dice ^ dice >> 30) * 0xBF58'476D'1CE4'E5B9;
  dice = (dice ^ dice >> 27) * 0x94D0'49BB'1331'11EB;
  return dice ^ dice >> 31;
}

// 0 to `most`.
Int128 UpTo(std::uint64_t dice, std::uint64_t use, Int128 most) {
  return static_cast<Int128>(UInt128{Mix(dice, use)} % (static_cast<UInt128>(most) + 1));
}

template <typename Choice>
Choice Pick(std::mt19937_64& random, const std::vector<double>& weights) {
  return static_cast<Choice>(
      std::discrete_distribution<int>(weights.begin(), weights.end())(random));
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "{move " << int{static_cast<std::uint8_t>(step.move)} << ", amount "
             << int{static_cast<std::uint8_t>(step.amount)} << ", action "
             << int{static_cast<std::uint8_t>(step.action)} << ", dice " << step.dice << "}";
}

Trace LongTrace(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Trace trace;
  trace.start = static_cast<Nanos>(random() % 4'000'000'000'000'000'000);
  const double back = random() % 4 == 0 ? 0 : 1;
  const double far = random() % 2 == 0 ? 0 : 1;
  trace.steps.resize(10'000);
  for (Step& step : trace.steps) {
    step.move = Pick<Move>(random, {20, 8, 20, 8 * far, 4 * far, 8, 2, 0.5 * far, 4 * back,
                                    3 * back, 0.2 * back * far});
    step.amount = Pick<Amount>(random, {4, 30, 20, 8, 5, 5, 2, 1});
    step.action = Pick<Action>(random, {20, 1, 4, 2});
    step.dice = random();
  }
  return trace;
}

Decision Key::Acquire(Nanos now, std::int64_t cost) {
  Fit(std::max(CapacityForAcquire(quota_, state_), state_.size));
  return algorithm::Acquire(quota_, state_, now, cost);
}

Decision Key::Overdraw(Nanos now, std::int64_t cost) {
  Fit(std::max(CapacityForAcquire(quota_, state_), state_.size));
  return algorithm::Overdraw(quota_, state_, now, cost);
}

Decision Key::Refund(Nanos now, std::int64_t cost) {
  Fit(state_.size);
  return algorithm::Refund(quota_, state_, now, cost);
}

bool Key::Release(Nanos now, std::int64_t lease) {
  Fit(state_.size);
  return algorithm::Release(quota_, state_, now, lease);
}

bool Key::Valid() const { return algorithm::Valid(quota_.algorithm(), {state_.data, state_.size}); }

void Key::Fit(std::uint32_t capacity) {
  if (capacity == state_.capacity) return;
  auto buffer = std::make_unique<std::uint8_t[]>(capacity);
  if (state_.size > 0) std::memcpy(buffer.get(), state_.data, state_.size);
  buffer_ = std::move(buffer);
  state_.data = buffer_.get();
  state_.capacity = capacity;
}

Int128 Player::Distance(const Step& step) const {
  const Int128 window = std::max<Int128>(quota_.window().count(), 1);
  const auto odd = static_cast<Int128>(Mix(step.dice, 1) & 1);
  constexpr Int128 kCentury = kMaxWindow.count();
  switch (step.move) {
    case Move::kStay:
      return 0;
    case Move::kNanosecond:
      return 1;
    case Move::kWithinStep:
      return UpTo(step.dice, 2, window / quota_.limit() + 1);
    case Move::kWithinWindow:
      return UpTo(step.dice, 2, 2 * window);
    case Move::kWindow:
      return window + UpTo(step.dice, 2, 2) - 1;
    case Move::kToRetry:
      return last_.retry_after.count() - odd;
    case Move::kToReset:
      return last_.reset_after.count() - odd;
    case Move::kFar:
      return UpTo(step.dice, 2, kCentury);
    case Move::kBackNanosecond:
      return -1;
    case Move::kBackWithinWindow:
      return -UpTo(step.dice, 2, window);
    case Move::kBackFar:
      return -UpTo(step.dice, 2, kCentury);
  }
  return 0;
}

Nanos Player::Move(const Step& step) {
  now_ = static_cast<Nanos>(std::clamp<Int128>(now_ + Distance(step), kFirst, kLast));
  return now_;
}

std::int64_t Player::Cost(const Step& step) const {
  const std::int64_t limit = quota_.limit();
  switch (step.amount) {
    case Amount::kZero:
      return 0;
    case Amount::kOne:
      return 1;
    case Amount::kFew:
      return 1 + static_cast<std::int64_t>(UpTo(step.dice, 3, 3));
    case Amount::kAny:
      return static_cast<std::int64_t>(UpTo(step.dice, 3, limit + 1));
    case Amount::kRemaining:
      return last_.remaining;
    case Amount::kOneMore:
      return last_.remaining + 1;
    case Amount::kLimit:
      return limit;
    case Amount::kTooMuch:
      return limit + 1;
  }
  return 0;
}

std::int64_t Player::Lease(const Step& step) const {
  // Mostly one of the latest, which may still be held; sometimes any, or one that never existed.
  if (leases_.empty() || step.dice % 16 == 0) return now_ + 1;
  const auto count = static_cast<Int128>(leases_.size());
  const Int128 back =
      UpTo(step.dice, 4, step.dice % 4 == 0 ? count - 1 : std::min<Int128>(count, 5) - 1);
  return leases_[static_cast<std::size_t>(count - 1 - back)];
}

void Player::Heard(const Decision& decision) {
  last_ = decision;
  if (decision.lease != 0) leases_.push_back(decision.lease);
}

}  // namespace weir::algorithm
