#include "algorithm/anchored_window.h"

#include <algorithm>

#include "algorithm/answer.h"
#include "algorithm/bytes.h"
#include "algorithm/time_range.h"

namespace weir::algorithm::anchored_window {

namespace {

struct Window {
  Nanos end;
  std::int64_t count;
};

// The window in force at `now`, or the one that a charge would begin.
Window Current(const Quota& quota, const State& state, Nanos now) noexcept {
  if (!state.empty()) {
    const Window kept{Load<Nanos>(state.data), Load<std::int64_t>(state.data + 8)};
    if (kept.count > 0 && kept.end > now) return kept;
  }
  return {now + quota.window().count(), 0};
}

void Write(State& state, Window window) noexcept {
  Store(state.data, window.end);
  Store(state.data + 8, window.count);
  state.size = kBytes;
}

Decision Decide(const Quota& quota, Window window, Nanos now, std::int64_t cost) noexcept {
  Decision decision = Answer(quota, window.count, cost);
  if (window.count > 0) decision.reset_after = Until(window.end, now);
  if (decision.verdict == Verdict::kLimited) decision.retry_after = Until(window.end, now);
  return decision;
}

}  // namespace

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  now = ClampTime(now);
  return Decide(quota, Current(quota, state, now), now, cost);
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  now = ClampTime(now);
  Window window = Current(quota, state, now);
  if (!Charges(quota, window.count, cost)) return Decide(quota, window, now, cost);
  window.count += cost;
  Write(state, window);
  return Decide(quota, window, now, 0);
}

Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  now = ClampTime(now);
  Window window = Current(quota, state, now);
  if (cost > 0) {
    window.count += Overcharge(window.count, cost);
    Write(state, window);
  }
  Decision decision = Standing(quota, window.count);
  if (window.count > 0) decision.reset_after = Until(window.end, now);
  if (!decision.allowed()) decision.retry_after = decision.reset_after;
  return decision;
}

Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  now = ClampTime(now);
  Window window = Current(quota, state, now);
  if (cost > 0 && window.count > 0) {
    window.count -= std::min(window.count, cost);
    Write(state, window);
  }
  return Decide(quota, window, now, 0);
}

void Return(const Quota& quota, State& state, Nanos now, Nanos at, std::int64_t count) noexcept {
  Window window = Current(quota, state, now);
  const bool same = at < window.end && at >= window.end - quota.window().count();
  if (!same || window.count == 0) return;
  window.count -= std::min(window.count, count);
  Write(state, window);
}

Nanos FreshAt(const State& state) noexcept { return Load<Nanos>(state.data); }

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() != kBytes) return false;
  const auto end = Load<Nanos>(bytes.data());
  const auto count = Load<std::int64_t>(bytes.data() + 8);
  return end > kEarliest && end <= kLatest + kMaxWindow.count() && count >= 0 && count <= kMaxLimit;
}

}  // namespace weir::algorithm::anchored_window
