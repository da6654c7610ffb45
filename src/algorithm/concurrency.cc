#include "algorithm/concurrency.h"

#include <algorithm>

#include "algorithm/answer.h"
#include "algorithm/charge_log.h"
#include "algorithm/time_range.h"

namespace weir::algorithm::concurrency {

namespace {

/// The facts that a step decides by.
struct View {
  LogHeader header;
  Nanos now;   // of the clock
  Nanos time;  // of the key: never before its latest grant
  LogPrefix expired;

  std::int64_t used() const noexcept { return header.total - expired.cost; }
  bool full() const noexcept { return header.count - expired.count >= kMaxLogEntries; }
};

View Look(const State& state, Nanos now) noexcept {
  now = ClampTime(now);
  View view{.header = ReadHeader(state), .now = now, .time = now, .expired = {}};
  if (state.empty()) return view;
  view.time = std::max(now, view.header.mark);
  view.expired = PrefixThrough(state, view.time);
  return view;
}

Decision Decide(const Quota& quota, const State& state, const View& view,
                std::int64_t cost) noexcept {
  Decision decision = Answer(quota, view.used(), cost);
  if (view.used() > 0) {
    decision.reset_after = Until(NewestCharge(state), view.now);
  }
  if (decision.verdict == Verdict::kLimited) {
    const std::int64_t to_expire = view.header.total + cost - quota.limit();
    decision.retry_after = Until(TimeAtSum(state, to_expire), view.now);
  } else if (decision.allowed() && cost > 0 && view.full()) {
    decision.verdict = Verdict::kLimited;
    decision.retry_after = Until(TimeAtSum(state, view.expired.cost + 1), view.now);
  }
  return decision;
}

Nanos NextExpiry(const Quota& quota, const State& state, const View& view) noexcept {
  Nanos expiry = view.now + quota.window().count();
  if (!state.empty()) expiry = std::max(expiry, view.header.newest + 1);
  return expiry == 0 ? 1 : expiry;  // 0 would read as "no lease"
}

}  // namespace

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  return Decide(quota, state, Look(state, now), cost);
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  const View view = Look(state, now);
  if (!Charges(quota, view.used(), cost) || view.full()) return Decide(quota, state, view, cost);
  const Nanos expiry = NextExpiry(quota, state, view);
  Append(state, view.expired, {expiry, cost}, view.time);
  Decision decision = Answer(quota, view.used() + cost, 0);
  decision.reset_after = Until(expiry, view.now);
  decision.lease = expiry;
  return decision;
}

// No more permits can be held than there are, so nothing is charged.
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t) noexcept {
  return concurrency::Peek(quota, state, now, 0);
}

// A refund does not say whose permits are meant: they are released by name.
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t) noexcept {
  return concurrency::Peek(quota, state, now, 0);
}

bool Release(State& state, Nanos now, std::int64_t lease) noexcept {
  if (state.empty() || lease <= Look(state, now).time) return false;
  return RemoveAt(state, lease);
}

Nanos FreshAt(const State& state) noexcept { return ReadHeader(state).newest; }

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (!ValidLog(bytes)) return false;
  const LogHeader header = ReadHeader(bytes.data());
  return header.mark >= kEarliest && header.mark <= kLatest && header.newest > header.mark;
}

}  // namespace weir::algorithm::concurrency
