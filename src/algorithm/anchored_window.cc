#include "algorithm/anchored_window.h"

namespace weir::algorithm {

WindowCount AnchoredWindow::Current(const Quota& quota, const State& state, Nanos now) noexcept {
  if (!state.empty()) {
    const WindowCount kept = WindowCount::Read(state.data);
    if (kept.count > 0 && kept.end > now) return kept;
  }
  return {now + quota.window().count(), 0};
}

void AnchoredWindow::Return(const Quota& quota, State& state, Nanos now, Nanos at,
                            std::int64_t count) noexcept {
  WindowCount window = Current(quota, state, now);
  if (!window.Holds(quota, at) || window.count == 0) return;
  window.GiveBack(count);
  window.Write(state);
}

}  // namespace weir::algorithm
