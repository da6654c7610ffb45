#include "algorithm/fixed_window.h"

#include <algorithm>

#include "algorithm/answer.h"

namespace weir::algorithm {

WindowCount FixedWindow::Current(const Quota& quota, const State& state, Nanos now) noexcept {
  const Nanos width = quota.window().count();
  const Nanos start = FloorDivide(now, width) * width;
  if (state.empty()) return {start + width, 0};
  const WindowCount kept = WindowCount::Read(state.data);
  if (kept.end <= start) return {start + width, 0};
  return {std::max(kept.end, start + width), kept.count};
}

// A quota's windows end at multiples of its own length. A window of a shorter quota that has begun
// since the charge has another end.
void FixedWindow::Return(const Quota& quota, State& state, Nanos now, Nanos at,
                         std::int64_t count) noexcept {
  WindowCount window = WindowCount::Read(state.data);
  const Nanos width = quota.window().count();
  const bool holds = window.end % width == 0 && at < window.end && at >= window.end - width;
  if (!holds || now >= window.end) return;
  window.GiveBack(count);
  window.Write(state);
}

}  // namespace weir::algorithm
