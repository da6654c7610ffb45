#include "weir/clock.h"

namespace weir {

namespace {

Nanos Steady() noexcept { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

const SystemClock& SystemClock::Get() noexcept {
  static const SystemClock clock;
  return clock;
}

SystemClock::SystemClock() noexcept {
  offset_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count() -
               Steady();
}

Nanos SystemClock::Now() const noexcept { return Steady() + offset_ns_; }

}  // namespace weir
