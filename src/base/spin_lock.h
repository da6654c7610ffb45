#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {

/// A lock for sections of a few dozen nanoseconds. A waiter backs off for longer and longer, and
/// starts with a long pause if it waited for the same lock last time: that lets the holder's core
/// run several sections while it has the memory in its cache, instead of handing it over each time.
/// Then the waiter yields, so that a preempted holder gets a core again. Four bytes; meets the
/// standard's Lockable. Not fair.
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
  [[gnu::noinline]] void Wait() noexcept {
    constexpr int kMoment = 16;  // pauses of 10 to 40 ns
    constexpr int kRun = 256;
    constexpr int kPatience = 2;
    static thread_local const SpinLock* last = nullptr;
    int pauses = last == this ? kRun : kMoment;
    last = this;
    for (int round = 0;; ++round) {
      if (round < kPatience) {
        for (int i = 0; i < pauses; ++i) Pause();
        pauses *= 4;
      } else {
        std::this_thread::yield();
      }
      if (try_lock()) return;
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
