#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {

/// A lock for sections of a few dozen nanoseconds. Waiters step back for longer and longer, which
/// lets the holder's core do several sections while it has the memory at hand, instead of handing
/// it over each time; then they let others run, so a holder that lost its core gets it back. Four
/// bytes; meets the standard's Lockable. Not fair.
class SpinLock {
 public:
  void lock() noexcept {
    if (state_.exchange(1, std::memory_order_acquire) != 0) Wait();
  }
  bool try_lock() noexcept {
    return state_.load(std::memory_order_relaxed) == 0 &&
           state_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() noexcept { state_.store(0, std::memory_order_release); }

 private:
  void Wait() noexcept {
    constexpr int kFirst = 16;
    constexpr int kLongest = 256;
    constexpr int kPatience = 12;
    int pauses = kFirst;
    for (int round = 0;; ++round) {
      for (int i = 0; i < pauses; ++i) Pause();
      if (try_lock()) return;
      if (pauses < kLongest) pauses *= 4;
      if (round >= kPatience) std::this_thread::yield();
    }
  }
  static void Pause() noexcept {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace weir
