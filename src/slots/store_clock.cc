#include "slots/store_clock.h"

#include <algorithm>

namespace weir::slots {

void StoreClock::Note(Millis store_now, Millis sent, Millis received) noexcept {
  // Milliseconds are rounded down, so each difference is off by less than one.
  const Bounds told{.least = store_now - received - 1, .most = store_now - sent + 1};
  const bool contradicts = told.least > most() + 1 || told.most < least() - 1;
  if (!known_ || contradicts) {
    known_ = true;
    begun_ = received;
    now_ = before_ = told;
    return;
  }
  if (received >= begun_ + kPeriod) {
    begun_ = received;
    before_ = now_;
    now_ = told;
    return;
  }
  now_ = {.least = std::max(now_.least, told.least), .most = std::min(now_.most, told.most)};
}

Millis StoreClock::least() const noexcept { return std::max(before_.least, now_.least); }

// The larger of two bounds: if the clock moved, only the later one holds.
Millis StoreClock::most() const noexcept { return std::max(before_.most, now_.most); }

}  // namespace weir::slots
