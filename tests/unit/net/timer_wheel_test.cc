#include "net/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

namespace weir::net {
namespace {

using std::chrono::milliseconds;

class Probe final : public TimerWheel::Entry {
 public:
  void OnDeadline() override { ++fired; }
  int fired = 0;
};

void TickTimes(TimerWheel& wheel, int times) {
  for (int i = 0; i < times; ++i) wheel.Tick();
}

// A tick is 100 ms; one more tick is granted because the current one is partly over.
TEST(TimerWheel, FiresOnceAfterTheDeadline) {
  TimerWheel wheel;
  Probe probe;
  wheel.Set(probe, milliseconds(250));  // 3 ticks + 1
  TickTimes(wheel, 3);
  EXPECT_EQ(probe.fired, 0);
  TickTimes(wheel, 1);
  EXPECT_EQ(probe.fired, 1);
  TickTimes(wheel, 3000);
  EXPECT_EQ(probe.fired, 1);
}

TEST(TimerWheel, PushingTheDeadlineAwayPostponesIt) {
  TimerWheel wheel;
  Probe probe;
  for (int i = 0; i < 50; ++i) {
    wheel.Set(probe, milliseconds(300));
    TickTimes(wheel, 3);
  }
  EXPECT_EQ(probe.fired, 0);
  TickTimes(wheel, 1);
  EXPECT_EQ(probe.fired, 1);
}

TEST(TimerWheel, PullingTheDeadlineNearerCounts) {
  TimerWheel wheel;
  Probe probe;
  wheel.Set(probe, milliseconds(60'000));
  wheel.Set(probe, milliseconds(100));
  TickTimes(wheel, 2);
  EXPECT_EQ(probe.fired, 1);
}

TEST(TimerWheel, DeadlinesBeyondTheHorizonFireOnTime) {
  TimerWheel wheel;
  Probe probe;
  wheel.Set(probe, milliseconds(500'000));  // 5000 ticks + 1; the wheel has 1024 slots
  TickTimes(wheel, 5000);
  EXPECT_EQ(probe.fired, 0);
  TickTimes(wheel, 1);
  EXPECT_EQ(probe.fired, 1);
}

TEST(TimerWheel, CancelledAndDestroyedEntriesNeverFire) {
  TimerWheel wheel;
  Probe cancelled;
  Probe kept;
  auto destroyed = std::make_unique<Probe>();
  wheel.Set(cancelled, milliseconds(100));
  wheel.Set(*destroyed, milliseconds(100));
  wheel.Set(kept, milliseconds(100));
  wheel.Cancel(cancelled);
  destroyed.reset();
  TickTimes(wheel, 10);
  EXPECT_EQ(cancelled.fired, 0);
  EXPECT_EQ(kept.fired, 1);
}

class Destroyer final : public TimerWheel::Entry {
 public:
  void OnDeadline() override { victim.reset(); }
  std::unique_ptr<Probe> victim;
};

TEST(TimerWheel, ADueEntryMayDestroyAnother) {
  TimerWheel wheel;
  Probe before;
  Destroyer destroyer;
  destroyer.victim = std::make_unique<Probe>();
  // All three are due at the same tick, the victim before or after its destroyer in the two
  // runs.
  wheel.Set(before, milliseconds(100));
  wheel.Set(*destroyer.victim, milliseconds(100));
  wheel.Set(destroyer, milliseconds(100));
  TickTimes(wheel, 2);
  EXPECT_EQ(before.fired, 1);
  EXPECT_EQ(destroyer.victim, nullptr);
}

TEST(TimerWheel, ManyThatAreDueTogetherAreDoneAFewAtATime) {
  std::array<Probe, 10> probes;
  TimerWheel wheel;
  for (Probe& probe : probes) wheel.Set(probe, milliseconds(100));
  const auto fired = [&probes] {
    return std::accumulate(probes.begin(), probes.end(), 0,
                           [](int sum, const Probe& probe) { return sum + probe.fired; });
  };
  wheel.Advance();
  wheel.Advance();
  EXPECT_TRUE(wheel.RunDue(4));
  EXPECT_EQ(fired(), 4);
  // In between, one gets more time, one less, and another tick has its own that are due.
  Probe* const first = std::find_if(probes.begin(), probes.end(),
                                    [](const Probe& probe) { return probe.fired == 0; });
  Probe late;
  wheel.Set(*first, milliseconds(60'000));
  wheel.Set(late, milliseconds(0));
  wheel.Advance();
  EXPECT_TRUE(wheel.RunDue(4));
  EXPECT_EQ(fired(), 8);
  EXPECT_FALSE(wheel.RunDue(4));
  EXPECT_EQ(fired(), 9);
  EXPECT_EQ(late.fired, 1);
  TickTimes(wheel, 601);
  EXPECT_EQ(fired(), 10);
}

TEST(TimerWheel, EntriesMayOutliveIt) {
  Probe one;
  Probe two;
  {
    TimerWheel wheel;
    wheel.Set(one, milliseconds(100));
    wheel.Set(two, milliseconds(0));
    wheel.Advance();  // one of them is due by now
  }
  TimerWheel next;
  next.Set(one, milliseconds(100));
  TickTimes(next, 3);
  EXPECT_EQ(one.fired, 1);
  EXPECT_EQ(two.fired, 0);
}

}  // namespace
}  // namespace weir::net
