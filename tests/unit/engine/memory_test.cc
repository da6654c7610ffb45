// What a key costs on the heap. Counted by replacing the program's operator new.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>

#include "weir/engine.h"

namespace {
std::atomic<std::size_t> live{0};      // bytes allocated and not freed
constexpr std::size_t kSizeHead = 16;  // in front of each block: its size
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = std::malloc(size + kSizeHead);
  if (memory == nullptr) throw std::bad_alloc();
  *static_cast<std::size_t*>(memory) = size;
  live.fetch_add(size, std::memory_order_relaxed);
  return static_cast<char*>(memory) + kSizeHead;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  void* const memory = static_cast<char*>(block) - kSizeHead;
  live.fetch_sub(*static_cast<std::size_t*>(memory), std::memory_order_relaxed);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(EngineMemory, HundredGrantsOfASlidingLogTakeLittleMoreThanTheirState) {
  ManualClock clock(1'700'000'000'000'000'000);
  Engine engine(*Quota::SlidingLog(100, 1h), {.max_keys = 1'000, .clock = &clock});
  constexpr int kKeys = 200;
  const auto ask_for_all = [&] {
    for (int key = 0; key < kKeys; ++key) engine.TryAcquire("192.0.2." + std::to_string(key));
  };
  ask_for_all();
  const std::size_t of_one_grant = live;
  for (int grant = 1; grant < 100; ++grant) {
    clock.Advance(36s);
    ask_for_all();
  }
  ASSERT_EQ(engine.Peek("192.0.2.7").remaining, 0);
  // 99 more grants of 5 bytes each, and the spare room for the next ones.
  EXPECT_LE((live - of_one_grant) / kKeys, 99U * 5 * 9 / 8);
}

TEST(EngineMemory, SweepingGivesBackWhatTheLogsOfIdleKeysTook) {
  ManualClock clock(1'700'000'000'000'000'000);
  Engine engine(*Quota::SlidingLog(100, 1h), {.max_keys = 1'000, .clock = &clock});
  (void)engine.TryAcquire("192.0.2.1");
  const std::size_t of_one_key = live;
  for (int grant = 0; grant < 100; ++grant) {
    clock.Advance(1s);
    for (int key = 0; key < 200; ++key) (void)engine.TryAcquire("user-" + std::to_string(key));
  }
  ASSERT_GT(live, of_one_key + std::size_t{200} * 100 * 4);  // a second apart: 4 bytes and a code
  clock.Advance(1h);
  EXPECT_EQ(engine.Sweep(), 201U);
  // The table itself keeps its size; the logs have been freed.
  EXPECT_LT(live, of_one_key + std::size_t{200} * 100);
}

}  // namespace
}  // namespace weir
