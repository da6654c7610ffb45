#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {

/// A lock for sections of a few dozen nanoseconds. Waiters spin a little, then let others run, so a
/// holder that lost its core gets it back. Four bytes; meets the standard's Lockable.
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
    constexpr int kSpins = 64;
    do {
      for (int i = 0; state_.load(std::memory_order_relaxed) != 0; ++i) {
        if (i < kSpins) {
          Pause();
        } else {
          std::this_thread::yield();
        }
      }
    } while (state_.exchange(1, std::memory_order_acquire) != 0);
  }
  static void Pause() noexcept {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace weir
