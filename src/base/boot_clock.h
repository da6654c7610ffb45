#pragma once

#include <ctime>

#include "weir/clock.h"

namespace weir {

/// Time since the machine started, including time spent suspended, which other clocks leave out.
/// For terms that keep running elsewhere in the meantime. Not the time of day. Thread-safe.
class BootClock final : public Clock {
 public:
  static const BootClock& Get() noexcept {
    static const BootClock clock;
    return clock;
  }

  Nanos Now() const noexcept override {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return Nanos{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace weir
