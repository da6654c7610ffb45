#include "support/stopwatch.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/child_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

TEST(Stopwatch, CountsWhatIsSlept) {
  const Stopwatch watch;
  std::this_thread::sleep_for(50ms);
  EXPECT_GE(watch.elapsed(), 40ms);
}

// Two computing threads share one processor: together they wait for it, each half of the time.
TEST(Stopwatch, LeavesOutWhatThreadsWaitForAProcessor) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  }
  std::atomic<bool> stop{false};
  const auto began = std::chrono::steady_clock::now();
  const Stopwatch watch;
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      ::sched_setaffinity(0, sizeof one, &one);
      while (!stop) {
      }
    });
  }
  std::this_thread::sleep_for(400ms);
  const auto counted = watch.elapsed();
  const auto passed = std::chrono::steady_clock::now() - began;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(counted, passed * 3 / 4);
}

TEST(Stopwatch, LeavesOutWhatAProcessThatItStartedWaits) {
  // One processor for two loops, both children of a shell that is our child.
  const auto began = std::chrono::steady_clock::now();
  const Stopwatch watch;
  ChildProcess shell({"sh", "-c",
                      "one=$(taskset -cp $$ | sed 's/.*[ ,-]//'); taskset -cp $one $$ >/dev/null; "
                      "(while :; do :; done) & (while :; do :; done) & echo begun; wait"});
  ASSERT_TRUE(shell.WaitForLine("begun"));
  std::this_thread::sleep_for(400ms);
  const auto counted = watch.elapsed();
  const auto passed = std::chrono::steady_clock::now() - began;
  shell.Kill();
  EXPECT_LT(counted, passed - 100ms);
}

}  // namespace
}  // namespace weir::test
