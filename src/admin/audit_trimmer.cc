#include "admin/audit_trimmer.h"

#include <algorithm>

namespace weir::admin {

void AuditTrimmer::OnSecond(Nanos now) {
  constexpr Nanos kMinute = Nanos{60} * 1'000'000'000;
  constexpr std::size_t kMost = 500;
  const bool asked = keep_.entries != 0 || keep_.age.count() != 0;
  next_ = std::min(next_, now + kMinute);  // the clock may be set back
  if (!asked || (now < next_ && !more_->exchange(false))) return;
  next_ = now + kMinute;
  const Nanos oldest = keep_.age.count() == 0 ? 0 : now - keep_.age.count();
  log_.Trim(keep_.entries, oldest, kMost, [more = more_](const Result<std::size_t>& deleted) {
    more->store(deleted.ok() && *deleted == kMost);
  });
}

}  // namespace weir::admin
