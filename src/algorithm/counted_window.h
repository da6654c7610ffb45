#pragma once

// Shared by the algorithms with one count in one window. They differ only in which window is in
// force.

#include <algorithm>
#include <cstdint>
#include <span>

#include "algorithm/answer.h"
#include "algorithm/bytes.h"
#include "algorithm/state.h"
#include "algorithm/time_range.h"

namespace weir::algorithm {

/// Bytes (little-endian): i64 end of the window in ns, i64 permits granted in it.
struct WindowCount {
  Nanos end;
  std::int64_t count;

  static constexpr std::uint32_t kBytes = 16;

  static WindowCount Read(const std::uint8_t* bytes) noexcept {
    return {Load<Nanos>(bytes), Load<std::int64_t>(bytes + 8)};
  }
  void Write(State& state) const noexcept {
    Store(state.data, end);
    Store(state.data + 8, count);
    state.size = kBytes;
  }
  void GiveBack(std::int64_t cost) noexcept { count -= std::min(count, cost); }
};

/// The steps on such a state. `Rule::Current(quota, state, now)` is the window in force at `now`
/// with what was granted in it, or the one that a charge would begin.
template <typename Rule>
struct CountedWindow {
  static constexpr std::uint32_t kBytes = WindowCount::kBytes;

  static Decision Peek(const Quota& quota, const State& state, Nanos now,
                       std::int64_t cost) noexcept {
    now = ClampTime(now);
    return Decide(quota, Rule::Current(quota, state, now), now, cost);
  }

  static Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
    now = ClampTime(now);
    WindowCount window = Rule::Current(quota, state, now);
    if (!Charges(quota, window.count, cost)) return Decide(quota, window, now, cost);
    window.count += cost;
    window.Write(state);
    return Decide(quota, window, now, 0);
  }

  static Decision Overdraw(const Quota& quota, State& state, Nanos now,
                           std::int64_t cost) noexcept {
    now = ClampTime(now);
    WindowCount window = Rule::Current(quota, state, now);
    if (cost > 0) {
      window.count += Overcharge(window.count, cost);
      window.Write(state);
    }
    Decision decision = Standing(quota, window.count);
    if (window.count > 0) decision.reset_after = Until(window.end, now);
    if (!decision.allowed()) decision.retry_after = decision.reset_after;
    return decision;
  }

  static Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
    now = ClampTime(now);
    WindowCount window = Rule::Current(quota, state, now);
    if (cost > 0 && window.count > 0) {
      window.GiveBack(cost);
      window.Write(state);
    }
    return Decide(quota, window, now, 0);
  }

  static Nanos FreshAt(const State& state) noexcept { return WindowCount::Read(state.data).end; }

  static bool Valid(std::span<const std::uint8_t> bytes) noexcept {
    if (bytes.size() != kBytes) return false;
    const auto [end, count] = WindowCount::Read(bytes.data());
    return end > kEarliest && end <= kLatest + kMaxWindow.count() && count >= 0 &&
           count <= kMaxLimit;
  }

 private:
  static Decision Decide(const Quota& quota, WindowCount window, Nanos now,
                         std::int64_t cost) noexcept {
    Decision decision = Answer(quota, window.count, cost);
    if (window.count > 0) decision.reset_after = Until(window.end, now);
    if (decision.verdict == Verdict::kLimited) decision.retry_after = Until(window.end, now);
    return decision;
  }
};

}  // namespace weir::algorithm
