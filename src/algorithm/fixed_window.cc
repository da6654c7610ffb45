#include "algorithm/fixed_window.h"

#include <algorithm>

#include "algorithm/answer.h"
#include "algorithm/bytes.h"
#include "algorithm/time_range.h"

namespace weir::algorithm::fixed_window {

namespace {

struct Window {
  Nanos end;
  std::int64_t count;
};

Window Read(const State& state) noexcept {
  return {Load<Nanos>(state.data), Load<std::int64_t>(state.data + 8)};
}

void Write(State& state, Window window) noexcept {
  Store(state.data, window.end);
  Store(state.data + 8, window.count);
  state.size = kBytes;
}

// The window that is in force at `now`, with what was granted in it.
Window Current(const Quota& quota, const State& state, Nanos now) noexcept {
  const Nanos width = quota.window().count();
  const Nanos start = FloorDivide(now, width) * width;
  if (state.empty()) return {start + width, 0};
  const Window kept = Read(state);
  if (kept.end <= start) return {start + width, 0};
  return {std::max(kept.end, start + width), kept.count};
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
  Window window = Read(state);
  const bool same = at < window.end && at >= window.end - quota.window().count();
  if (!same || now >= window.end) return;
  window.count -= std::min(window.count, count);
  Write(state, window);
}

Nanos FreshAt(const State& state) noexcept { return Read(state).end; }

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() != kBytes) return false;
  const auto end = Load<Nanos>(bytes.data());
  const auto count = Load<std::int64_t>(bytes.data() + 8);
  return end > kEarliest && end <= kLatest + kMaxWindow.count() && count >= 0 && count <= kMaxLimit;
}

}  // namespace weir::algorithm::fixed_window
