#include "weir/clock.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

// Reading the kernel's clock costs about 28 ns, the processor's counter about 10. So each thread
// anchors the counter to the kernel's clock and counts on from there for a tenth of a millisecond,
// then anchors again: too short a time for the two to diverge by more than a few nanoseconds,
// whatever the counter's frequency does. A thread never sees its own time go backwards.

namespace weir {

namespace {

Nanos Steady() noexcept { return std::chrono::steady_clock::now().time_since_epoch().count(); }

Nanos Wall() noexcept {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

#if defined(__x86_64__)

constexpr int kScaleBits = 32;
constexpr Nanos kAnchorLife = 100'000;

bool CounterIsSteady() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}

struct Reading {
  std::uint64_t ticks = 0;
  Nanos steady = 0;
  bool close = false;  // both were read without being preempted in between
};

Reading ReadBoth() noexcept {
  constexpr std::uint64_t kCloseTicks = 2'000;
  constexpr int kTries = 4;
  Reading reading;
  for (int i = 0; i < kTries && !reading.close; ++i) {
    const std::uint64_t before = __rdtsc();
    reading.steady = Steady();
    const std::uint64_t took = __rdtsc() - before;
    reading.ticks = before + took / 2;
    reading.close = took < kCloseTicks;
  }
  return reading;
}

struct Anchor {
  std::uint64_t ticks = 0;
  std::uint64_t life_ticks = 0;  // 0: never anchored
  Nanos at = 0;
  Nanos last = 0;
};

thread_local Anchor anchor;

#endif

}  // namespace

const SystemClock& SystemClock::Get() noexcept {
  static const SystemClock clock;
  return clock;
}

#if defined(__x86_64__)

SystemClock::SystemClock() noexcept : offset_ns_(Wall() - Steady()) {
  if (!CounterIsSteady()) return;
  const Reading start = ReadBoth();
  base_ns_ = start.steady;
  base_ticks_ = start.ticks;
  Reading end = ReadBoth();
  while (!end.close || end.steady - base_ns_ < kAnchorLife) end = ReadBoth();
  Calibrate(end.ticks, end.steady);
}

void SystemClock::Calibrate(std::uint64_t ticks, Nanos steady) const noexcept {
  const auto per_tick =
      static_cast<double>(steady - base_ns_) / static_cast<double>(ticks - base_ticks_);
  scale_.store(
      static_cast<std::uint64_t>(per_tick * static_cast<double>(std::uint64_t{1} << kScaleBits)),
      std::memory_order_relaxed);
}

Nanos SystemClock::Now() const noexcept {
  const std::uint64_t ticks = __rdtsc() - anchor.ticks;
  if (ticks >= anchor.life_ticks) [[unlikely]] {
    // Out of line, so that the common path needs no stack space for this.
    return [this]() __attribute__((noinline)) {
      const std::uint64_t scale = scale_.load(std::memory_order_relaxed);
      if (scale == 0) return Steady() + offset_ns_;
      const Reading reading = ReadBoth();
      // The longer the clock has run, the better the two rates are known.
      if (reading.close) Calibrate(reading.ticks, reading.steady);
      anchor.at = reading.steady;
      anchor.ticks = reading.ticks;
      anchor.life_ticks =
          reading.close ? (static_cast<std::uint64_t>(kAnchorLife) << kScaleBits) / scale : 0;
      anchor.last = std::max(anchor.last, anchor.at);
      return anchor.last + offset_ns_;
    }
    ();
  }
  const std::uint64_t scale = scale_.load(std::memory_order_relaxed);
  anchor.last = std::max(anchor.last, anchor.at + static_cast<Nanos>(ticks * scale >> kScaleBits));
  return anchor.last + offset_ns_;
}

#else

SystemClock::SystemClock() noexcept : offset_ns_(Wall() - Steady()) {}

Nanos SystemClock::Now() const noexcept { return Steady() + offset_ns_; }

#endif

}  // namespace weir
