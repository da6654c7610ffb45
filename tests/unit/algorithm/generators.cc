#include "unit/algorithm/generators.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"

namespace weir {

void showValue(const Quota& quota, std::ostream& out) { out << quota.ToString(); }

void showValue(const Decision& decision, std::ostream& out) {
  out << "verdict " << int{static_cast<std::uint8_t>(decision.verdict)} << ", limit "
      << decision.limit << ", remaining " << decision.remaining << ", retry_after "
      << decision.retry_after.count() << ", reset_after " << decision.reset_after.count()
      << ", lease " << decision.lease;
}

}  // namespace weir

namespace weir::algorithm {

void showValue(const Trace& trace, std::ostream& out) {
  out << "start " << trace.start << ", " << trace.steps.size() << " steps";
  if (trace.steps.size() > 100) return;
  for (const Step& step : trace.steps) out << "\n  " << step;
}

namespace {

using std::chrono::nanoseconds;

// From 1 to `most`: the ends, round numbers, and every order of magnitude equally likely.
rc::Gen<std::int64_t> Magnitude(std::int64_t most) {
  const auto any =
      rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 62),
                                 rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 61)),
                   [most](const std::pair<int, std::int64_t>& parts) {
                     return 1 + (parts.second >> (61 - std::min(parts.first, 61))) % most;
                   });
  const auto edge = rc::gen::map(
      rc::gen::element<std::int64_t>(1, 2, 3, 7, 10, 100, 1000, 1'000'000'000, most - 1, most),
      [most](std::int64_t value) { return std::clamp<std::int64_t>(value, 1, most); });
  return rc::gen::oneOf(any, edge);
}

// Limits that a trace can exhaust are more likely than others.
rc::Gen<std::int64_t> Limit() {
  return rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 30), Magnitude(kMaxLimit));
}

rc::Gen<nanoseconds> Window() {
  return rc::gen::map(Magnitude(kMaxWindow.count()),
                      [](std::int64_t ns) { return nanoseconds(ns); });
}

rc::Gen<Step> AnyStep() {
  const auto weighted = [](auto... pairs) { return rc::gen::weightedElement({pairs...}); };
  using M = std::pair<std::size_t, Move>;
  using A = std::pair<std::size_t, Amount>;
  using C = std::pair<std::size_t, Action>;
  return rc::gen::build<Step>(
      rc::gen::set(&Step::move,
                   weighted(M{10, Move::kStay}, M{4, Move::kNanosecond}, M{8, Move::kWithinStep},
                            M{6, Move::kWithinWindow}, M{3, Move::kWindow}, M{8, Move::kToRetry},
                            M{3, Move::kToReset}, M{1, Move::kFar}, M{3, Move::kBackNanosecond},
                            M{3, Move::kBackWithinWindow}, M{1, Move::kBackFar})),
      rc::gen::set(&Step::amount,
                   weighted(A{2, Amount::kZero}, A{10, Amount::kOne}, A{6, Amount::kFew},
                            A{3, Amount::kAny}, A{4, Amount::kRemaining}, A{3, Amount::kOneMore},
                            A{3, Amount::kLimit}, A{1, Amount::kTooMuch})),
      rc::gen::set(&Step::action, weighted(C{8, Action::kAcquire}, C{1, Action::kRefund},
                                           C{2, Action::kRelease}, C{2, Action::kOverdraw})),
      rc::gen::set(&Step::dice));
}

}  // namespace

rc::Gen<Quota> AnyTokenBucket() {
  return rc::gen::exec([] {
    // Permits that take whole nanoseconds have a separate code path.
    const std::int64_t refill =
        *rc::gen::oneOf(rc::gen::just<std::int64_t>(1), Magnitude(0xFFFF'FFFF));
    const std::int64_t period = *Magnitude(kMaxWindow.count());
    const Int128 most = Int128{kMaxWindow.count()} * refill / period;
    const std::int64_t capacity =
        std::min(*Limit(), static_cast<std::int64_t>(std::min<Int128>(most, kMaxLimit)));
    return Quota::TokenBucket(capacity, refill, nanoseconds(period)).value();
  });
}

rc::Gen<Quota> AnyFixedWindow() {
  return rc::gen::exec([] { return Quota::FixedWindow(*Limit(), *Window()).value(); });
}

rc::Gen<Quota> AnySlidingLog() {
  return rc::gen::exec([] { return Quota::SlidingLog(*Limit(), *Window()).value(); });
}

rc::Gen<Quota> AnySlidingCounter() {
  return rc::gen::exec([] {
    const nanoseconds window = *Window();
    const std::int64_t most = std::min(window.count(), kMaxBuckets);
    const std::int64_t buckets = std::min(
        most, *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 13), Magnitude(kMaxBuckets)));
    return Quota::SlidingCounter(*Limit(), window, buckets).value();
  });
}

rc::Gen<Quota> AnyConcurrency() {
  return rc::gen::exec([] { return Quota::Concurrency(*Limit(), *Window()).value(); });
}

rc::Gen<Quota> AnyAnchoredWindow() {
  return rc::gen::exec([] { return Quota::AnchoredWindow(*Limit(), *Window()).value(); });
}

rc::Gen<Trace> AnyTrace() {
  const auto start = rc::gen::element<Nanos>(0, 1, -1, 1'800'000'000'000'000'000,
                                             -1'000'000'000'000'000'000, 5'800'000'000'000'000'000);
  return rc::gen::build<Trace>(
      rc::gen::set(&Trace::start, start),
      rc::gen::set(&Trace::steps, rc::gen::container<std::vector<Step>>(AnyStep())));
}

}  // namespace weir::algorithm
