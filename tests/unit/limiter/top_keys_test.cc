#include "limiter/top_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <string>
#include <thread>

#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::kStart;
using test::World;

constexpr Nanos kSecond = 1'000'000'000;

TEST(TopKeys, TellsHotAndLimitedKeysApart) {
  World world(
      "policies: [{name: two, match: {user: \"*\"}, "
      "quota: {fixed_window: {limit: 2, window: 1h}}}]");
  const auto limiter = world.NewLimiter();
  for (int i = 0; i < 5; ++i) Asked::For({{"user", "busy"}}).On(*limiter);  // 2 allowed, 3 limited
  Asked::For({{"user", "calm"}}).On(*limiter);
  Asked::Key("bare").On(*limiter);
  TopKeys& top = world.shared().top;
  top.Collect(kStart);
  const auto hot = top.Top(TopKeys::Kind::kHot, 10, kStart);
  ASSERT_EQ(hot.size(), 3U);
  EXPECT_EQ(hot[0].key, "default/two|user:busy");
  EXPECT_EQ(hot[0].count, 5U);
  EXPECT_EQ(hot[0].error, 0U);
  const auto limited = top.Top(TopKeys::Kind::kLimited, 10, kStart);
  ASSERT_EQ(limited.size(), 1U);
  EXPECT_EQ(limited[0].count, 3U);
  EXPECT_EQ(top.Top(TopKeys::Kind::kHot, 1, kStart).size(), 1U);
}

TEST(TopKeys, KeysThatOnlyPoliciesOnTrialMatchAreThere) {
  World world(
      "policies: [{name: trial, match: {user: \"*\"}, shadow: true, "
      "quota: {fixed_window: {limit: 1, window: 1h}}}]");
  const auto limiter = world.NewLimiter();
  for (int i = 0; i < 3; ++i) Asked::For({{"user", "new"}}).On(*limiter);
  TopKeys& top = world.shared().top;
  top.Collect(kStart);
  const auto hot = top.Top(TopKeys::Kind::kHot, 10, kStart);
  ASSERT_EQ(hot.size(), 1U);
  EXPECT_EQ(hot[0].key, "default/trial|user:new");
  EXPECT_EQ(hot[0].count, 3U);
  // No request was denied.
  EXPECT_TRUE(top.Top(TopKeys::Kind::kLimited, 10, kStart).empty());
}

TEST(TopKeys, ChargesThatADoorMadeItselfAreCounted) {
  World world;
  const auto limiter = world.NewLimiter();
  const Quota quota = *Quota::FixedWindow(2, std::chrono::hours(1));
  const auto apply = [&](store::Op op) {
    store::Charge charge{"cl|user", 1, &quota};
    Decision decision;
    store::Application application;
    application.op = op;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
    bool done = false;
    limiter->Apply({&application, 1}, [&] { done = true; });
    EXPECT_TRUE(done);
  };
  for (int i = 0; i < 3; ++i) apply(store::Op::kCharge);  // 2 allowed, 1 limited
  apply(store::Op::kPeek);
  TopKeys& top = world.shared().top;
  top.Collect(kStart);
  const auto hot = top.Top(TopKeys::Kind::kHot, 10, kStart);
  ASSERT_EQ(hot.size(), 1U);
  EXPECT_EQ(hot[0].key, "cl|user");
  EXPECT_EQ(hot[0].count, 3U);
  EXPECT_EQ(hot[0].policy, kNoPolicy);
  EXPECT_EQ(top.Top(TopKeys::Kind::kLimited, 10, kStart)[0].count, 1U);
  EXPECT_EQ(world.shared().counters.Checks().allowed, 2U);
  EXPECT_EQ(world.shared().counters.Checks().limited, 1U);
}

TEST(TopKeys, PeeksAreNotCounted) {
  World world;
  const auto limiter = world.NewLimiter();
  Asked::Key("a", 1, store::Op::kPeek).On(*limiter);
  world.shared().top.Collect(kStart);
  EXPECT_TRUE(world.shared().top.Top(TopKeys::Kind::kHot, 10, kStart).empty());
}

TEST(TopKeys, WhatATrialWouldRefuseIsCountedApart) {
  TopKeys top;
  const auto sampler = top.Add();
  sampler->Note("a", 0, Outcome::kAllowed);
  sampler->Note("t", 1, Outcome::kShadow);
  top.Collect(kStart);
  EXPECT_EQ(top.Top(TopKeys::Kind::kHot, 10, kStart).size(), 1U);
  EXPECT_TRUE(top.Top(TopKeys::Kind::kLimited, 10, kStart).empty());
  const auto keys = top.Top(TopKeys::Kind::kShadow, 10, kStart);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].key, "t");
  EXPECT_EQ(keys[0].policy, 1U);
}

TEST(TopKeys, ForgetAfterAMinute) {
  TopKeys top;
  const auto sampler = top.Add();
  sampler->Note("a", 0, Outcome::kAllowed);
  top.Collect(kStart);
  sampler->Note("a", 0, Outcome::kAllowed);
  top.Collect(kStart + 30 * kSecond);
  EXPECT_EQ(top.Top(TopKeys::Kind::kHot, 1, kStart + 59 * kSecond)[0].count, 2U);
  // The slice of the first ten seconds has expired.
  EXPECT_EQ(top.Top(TopKeys::Kind::kHot, 1, kStart + 60 * kSecond)[0].count, 1U);
  EXPECT_TRUE(top.Top(TopKeys::Kind::kHot, 1, kStart + 90 * kSecond).empty());
}

TEST(TopKeys, LongKeysStayApart) {
  TopKeys top;
  const auto sampler = top.Add();
  const std::string common(4000, 'x');
  sampler->Note(common + "1", 0, Outcome::kAllowed);
  sampler->Note(common + "2", 0, Outcome::kAllowed);
  top.Collect(kStart);
  const auto keys = top.Top(TopKeys::Kind::kHot, 10, kStart);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key.size(), KeySampler::kMaxText);
}

TEST(TopKeys, AFloodIsCountedBySamplesThatStandForIt) {
  TopKeys top;
  const auto sampler = top.Add();
  // After the first second the sampler knows the rate.
  constexpr int kPerSecond = 500'000;
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < kPerSecond; ++i)
      sampler->Note(i % 4 == 0 ? "quarter" : "most", 0, Outcome::kAllowed);
    top.Collect(kStart + second * kSecond);
  }
  const auto keys = top.Top(TopKeys::Kind::kHot, 2, kStart);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key, "most");
  // 3 × 375,000 and 3 × 125,000. About 1,024 samples a second: a standard deviation of 2 to 4 %,
  // so a fifth is far outside.
  EXPECT_NEAR(static_cast<double>(keys[0].count), 1'125'000, 225'000);
  EXPECT_NEAR(static_cast<double>(keys[1].count), 375'000, 75'000);
}

/// The CPU time of a list, in microseconds.
double TimeOfTop(const TopKeys& top, Nanos now) {
  const auto clock = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  };
  const double before = clock();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(top.Top(TopKeys::Kind::kHot, 10, now).size(), 10U);
  return (clock() - before) / 10;
}

// The list is made on a reactor. Six times as many keys may take longer, but not a hundred times.
TEST(TopKeys, ManyKeysThatComeOnceDoNotTakeLongToList) {
  TopKeys top;
  const auto sampler = top.Add();
  const auto fill = [&](Nanos now) {
    for (std::size_t i = 0; i < TopKeys::kCapacity; ++i) {
      sampler->Note(std::to_string(now) + "/" + std::to_string(i), 0, Outcome::kAllowed);
    }
    top.Collect(now);
  };
  fill(kStart);
  const double one = TimeOfTop(top, kStart);
  Nanos now = kStart;
  for (std::size_t i = 1; i < TopKeys::kSlices; ++i) {
    now += TopKeys::kSliceSeconds * kSecond;
    fill(now);
  }
  EXPECT_LT(TimeOfTop(top, now), 40 * one);
}

TEST(TopKeys, SamplesCrossThreads) {
  TopKeys top;
  const auto sampler = top.Add();
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      top.Collect(kStart);
      EXPECT_LE(top.Top(TopKeys::Kind::kHot, 10, kStart).size(), 3U);
    }
  });
  for (int i = 0; i < 200'000; ++i)
    sampler->Note(std::string(1, static_cast<char>('a' + i % 3)), 0,
                  i % 2 == 0 ? Outcome::kLimited : Outcome::kAllowed);
  stop = true;
  reader.join();
  top.Collect(kStart);
  EXPECT_EQ(top.Top(TopKeys::Kind::kHot, 10, kStart).size(), 3U);
}

}  // namespace
}  // namespace weir::limiter
