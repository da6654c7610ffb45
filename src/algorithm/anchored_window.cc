#include "algorithm/anchored_window.h"

namespace weir::algorithm {

WindowCount AnchoredWindow::Current(const Quota& quota, const State& state, Nanos now) noexcept {
  if (!state.empty()) {
    const WindowCount kept = WindowCount::Read(state.data);
    if (kept.count > 0 && kept.end > now) return kept;
  }
  return {now + quota.window().count(), 0};
}

// Windows begin at any time and change their length with the quota: their ends identify them.
void AnchoredWindow::Return(const Quota& quota, State& state, Nanos now, Nanos end,
                            std::int64_t count) noexcept {
  WindowCount window = Current(quota, state, now);
  if (window.end != end || window.count == 0) return;
  window.GiveBack(count);
  window.Write(state);
}

}  // namespace weir::algorithm
