#include "algorithm/sliding_log.h"

#include <algorithm>

#include "algorithm/answer.h"
#include "algorithm/charge_log.h"
#include "algorithm/time_range.h"

namespace weir::algorithm::sliding_log {

namespace {

/// The facts that a step decides by.
struct View {
  LogHeader header;
  Nanos now;   // of the clock
  Nanos time;  // of the key: never before its newest grant
  LogPrefix expired;

  std::int64_t used() const noexcept { return header.total - expired.cost; }
};

View Look(const Quota& quota, const State& state, Nanos now) noexcept {
  now = ClampTime(now);
  View view{.header = ReadHeader(state), .now = now, .time = now, .expired = {}};
  if (state.empty()) return view;
  view.time = std::max(now, view.header.newest);
  view.expired = PrefixThrough(state, view.time - quota.window().count());
  return view;
}

Decision Decide(const Quota& quota, const State& state, const View& view,
                std::int64_t cost) noexcept {
  Decision decision = Answer(quota, view.used(), cost);
  const Nanos window = quota.window().count();
  if (view.used() > 0) {
    decision.reset_after = Until(NewestCharge(state) + window, view.now);
  }
  if (decision.verdict == Verdict::kLimited) {
    const std::int64_t to_leave = view.header.total + cost - quota.limit();
    decision.retry_after = Until(TimeAtSum(state, to_leave) + window, view.now);
  }
  return decision;
}

}  // namespace

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  return Decide(quota, state, Look(quota, state, now), cost);
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  const View view = Look(quota, state, now);
  if (!Charges(quota, view.used(), cost)) return Decide(quota, state, view, cost);
  Append(state, view.expired, {view.time, cost}, quota.window().count());
  Decision decision = Answer(quota, view.used() + cost, 0);
  decision.reset_after = Until(view.time + quota.window().count(), view.now);
  return decision;
}

Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  View view = Look(quota, state, now);
  if (const std::int64_t added = Overcharge(view.used(), cost); added > 0) {
    Append(state, view.expired, {view.time, added}, quota.window().count());
    view = Look(quota, state, now);
  }
  Decision decision = Standing(quota, view.used());
  const Nanos window = quota.window().count();
  if (view.used() > 0) decision.reset_after = Until(NewestCharge(state) + window, view.now);
  if (!decision.allowed()) {
    const Nanos leaves = TimeAtSum(state, view.header.total - quota.limit());
    decision.retry_after = Until(leaves + window, view.now);
  }
  return decision;
}

Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  const std::int64_t back = std::min(cost, Look(quota, state, now).used());
  if (back > 0) RemoveNewest(state, back);
  return sliding_log::Peek(quota, state, now, 0);
}

Nanos FreshAt(const State& state) noexcept {
  const LogHeader header = ReadHeader(state);
  if (header.total == 0) return header.newest;
  return std::max(header.newest, NewestCharge(state) + header.mark);
}

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (!ValidLog(bytes)) return false;
  const LogHeader header = ReadHeader(bytes.data());
  return header.mark >= 1 && header.mark <= kMaxWindow.count() && header.newest <= kLatest;
}

}  // namespace weir::algorithm::sliding_log
