#include "slots/retention.h"

#include <algorithm>

namespace weir::slots {

void Retirement::OnSecond(Nanos now) {
  constexpr Nanos kMinute = Nanos{60} * 1'000'000'000;
  constexpr Nanos kMilli = 1'000'000;
  if (options_.keep.count() == 0 && options_.keep_ids.count() == 0) return;
  next_ = std::min(next_, now + kMinute);  // the clock may be set back
  if (state_->busy || (now < next_ && !state_->more)) return;
  next_ = now + kMinute;
  const Millis today = now / kMilli;
  Retention retention;
  if (options_.keep.count() > 0) retention.over_before = today - options_.keep.count();
  if (options_.keep_ids.count() > 0) retention.archived_before = today - options_.keep_ids.count();
  state_->busy = true;
  store_.Retire(retention, [state = state_, limit = retention.limit](const Result<Retired>& told) {
    if (told.ok()) {
      state->archived += told->archived;
      state->dropped += told->dropped;
    }
    state->more = told.ok() && (told->archived == limit || told->dropped == limit);
    state->busy = false;
  });
}

}  // namespace weir::slots
