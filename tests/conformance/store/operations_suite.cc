// What every store must answer, calculated by hand. The clock stands still unless a test moves it.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "conformance/store/client.h"
#include "weir/clock.h"

namespace weir::store::conformance {
namespace {

using namespace std::chrono_literals;

// A day boundary, so that windows of seconds and minutes begin here: 20,000 days since 1970.
constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000;

class StoreOperations : public testing::Test {
 protected:
  ManualClock clock_{kStart};
  std::unique_ptr<Backend> backend_ = MakeBackend(&clock_);
  Client client_{*backend_};
};

TEST_F(StoreOperations, TokenBucketRefillsEvenly) {
  const Quota quota = *Quota::TokenBucket(3, 1, 1s);
  const Decision first = client_.Charge("k", quota, 2);
  EXPECT_TRUE(client_.applied());
  EXPECT_EQ(first.verdict, Verdict::kAllowed);
  EXPECT_EQ(first.limit, 3);
  EXPECT_EQ(first.remaining, 1);
  EXPECT_EQ(first.reset_after, 2s);  // 2 permits at 1 per second
  const Decision second = client_.Charge("k", quota, 2);
  EXPECT_FALSE(client_.applied());
  EXPECT_EQ(second.verdict, Verdict::kLimited);
  EXPECT_EQ(second.remaining, 1);
  EXPECT_EQ(second.retry_after, 1s);
  clock_.Advance(1s - 1ns);
  EXPECT_EQ(client_.Charge("k", quota, 2).verdict, Verdict::kLimited);
  clock_.Advance(1ns);
  EXPECT_EQ(client_.Charge("k", quota, 2).verdict, Verdict::kAllowed);
  EXPECT_EQ(client_.Charge("k", quota, 4).verdict, Verdict::kNever);
}

TEST_F(StoreOperations, FixedWindowBeginsAnewAtItsBoundary) {
  const Quota quota = *Quota::FixedWindow(2, 10s);
  clock_.Advance(4s);
  EXPECT_EQ(client_.Charge("k", quota).remaining, 1);
  EXPECT_EQ(client_.Charge("k", quota).remaining, 0);
  const Decision refused = client_.Charge("k", quota);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.retry_after, 6s);
  clock_.Advance(6s);
  EXPECT_EQ(client_.Charge("k", quota).remaining, 1);
}

TEST_F(StoreOperations, SlidingLogCountsAnySpanOfItsLength) {
  const Quota quota = *Quota::SlidingLog(2, 10s);
  EXPECT_TRUE(client_.Charge("k", quota).allowed());
  clock_.Advance(7s);
  EXPECT_TRUE(client_.Charge("k", quota).allowed());
  const Decision refused = client_.Charge("k", quota);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.retry_after, 3s);  // the first expires 10 s after it arrived
  clock_.Advance(3s);
  EXPECT_TRUE(client_.Charge("k", quota).allowed());
  EXPECT_EQ(client_.Charge("k", quota).retry_after, 7s);
}

TEST_F(StoreOperations, SlidingCounterForgetsABucketAtATime) {
  const Quota quota = *Quota::SlidingCounter(10, 10s, 10);
  EXPECT_EQ(client_.Charge("k", quota, 10).remaining, 0);
  clock_.Advance(9s);
  EXPECT_EQ(client_.Charge("k", quota).verdict, Verdict::kLimited);
  // The bucket of the first second slides out between the 10th and the 11th.
  clock_.Advance(2s);
  EXPECT_TRUE(client_.Charge("k", quota, 10).allowed());
}

TEST_F(StoreOperations, LeasesAreReleasedOnceOrExpire) {
  const Quota quota = *Quota::Concurrency(2, 30s);
  const Decision first = client_.Charge("k", quota);
  const Decision second = client_.Charge("k", quota);
  EXPECT_NE(first.lease, 0);
  EXPECT_NE(second.lease, first.lease);
  EXPECT_EQ(client_.Charge("k", quota).verdict, Verdict::kLimited);
  EXPECT_TRUE(client_.Release("k", quota, first.lease));
  EXPECT_FALSE(client_.Release("k", quota, first.lease));
  EXPECT_FALSE(client_.Release("never charged", quota, first.lease));
  EXPECT_TRUE(client_.Charge("k", quota).allowed());
  EXPECT_EQ(client_.Charge("k", quota).verdict, Verdict::kLimited);
  clock_.Advance(31s);
  EXPECT_FALSE(client_.Release("k", quota, second.lease));
  EXPECT_EQ(client_.Charge("k", quota, 2).remaining, 0);
}

TEST_F(StoreOperations, PeekTellsWithoutCharging) {
  const Quota quota = *Quota::FixedWindow(3, 10s);
  EXPECT_EQ(client_.Peek("k", quota, 1).remaining, 3);
  client_.Charge("k", quota, 2);
  const Decision peeked = client_.Peek("k", quota, 2);
  EXPECT_TRUE(client_.applied());
  EXPECT_EQ(peeked.verdict, Verdict::kLimited);
  EXPECT_EQ(peeked.remaining, 1);
  EXPECT_EQ(client_.Charge("k", quota, 0).remaining, 1);
  EXPECT_EQ(client_.Peek("k", quota).remaining, 1);
}

TEST_F(StoreOperations, RefundGivesBackNoMoreThanWasTaken) {
  for (const Quota& quota : {*Quota::TokenBucket(5, 1, 1s), *Quota::FixedWindow(5, 10s),
                             *Quota::SlidingLog(5, 10s), *Quota::SlidingCounter(5, 10s, 5)}) {
    SCOPED_TRACE(quota.ToString());
    client_.Charge("k", quota, 4);
    EXPECT_EQ(client_.Refund("k", quota, 3).remaining, 4);  // 5 - 4 + 3
    EXPECT_TRUE(client_.applied());
    EXPECT_EQ(client_.Refund("k", quota, 100).remaining, 5);
    EXPECT_EQ(client_.Refund("unknown", quota, 1).remaining, 5);
  }
}

TEST_F(StoreOperations, RefundFreesNobodysPermitsInFlight) {
  const Quota quota = *Quota::Concurrency(3, 30s);
  const Decision held = client_.Charge("k", quota, 2);
  EXPECT_EQ(client_.Refund("k", quota, 2).remaining, 1);
  EXPECT_EQ(client_.Charge("k", quota, 2).verdict, Verdict::kLimited);
  EXPECT_TRUE(client_.Release("k", quota, held.lease));
}

TEST_F(StoreOperations, ResetForgetsAKeyUnderEveryAlgorithm) {
  const Quota window = *Quota::FixedWindow(3, 10s);
  const Quota log = *Quota::SlidingLog(4, 10s);
  client_.Charge("k", window, 3);
  client_.Charge("k", log, 4);
  client_.Charge("other", window, 3);
  // One state per algorithm: neither has seen the other's charges.
  EXPECT_EQ(client_.Peek("k", window).remaining, 0);
  EXPECT_EQ(client_.Peek("k", log).remaining, 0);
  EXPECT_EQ(client_.Reset("k", window).remaining, 3);
  EXPECT_TRUE(client_.applied());
  EXPECT_EQ(client_.Peek("k", log).remaining, 4);
  EXPECT_EQ(client_.Peek("other", window).remaining, 0);
  EXPECT_EQ(client_.Charge("k", window, 3).remaining, 0);
}

TEST_F(StoreOperations, ChargesOfAGroupPassTogetherOrNotAtAll) {
  const Quota three = *Quota::FixedWindow(3, 10s);
  const Quota bucket = *Quota::TokenBucket(5, 1, 1s);
  const Quota jobs = *Quota::Concurrency(2, 30s);
  const auto granted = client_.ChargeAll({{"a", 2, &three}, {"b", 1, &bucket}, {"c", 1, &jobs}});
  EXPECT_TRUE(granted.applied);
  EXPECT_EQ(granted.decisions[0].remaining, 1);
  EXPECT_EQ(granted.decisions[1].remaining, 4);
  EXPECT_EQ(granted.decisions[2].remaining, 1);
  EXPECT_NE(granted.decisions[2].lease, 0);
  // "a" has 1 left, so nothing is charged; the others return what they would have decided.
  const auto refused =
      client_.ChargeAll({{"b", 1, &bucket}, {"a", 2, &three}, {"c", 1, &jobs}, {"new", 1, &three}});
  EXPECT_FALSE(refused.applied);
  EXPECT_EQ(refused.decisions[0].verdict, Verdict::kAllowed);
  EXPECT_EQ(refused.decisions[1].verdict, Verdict::kLimited);
  EXPECT_EQ(refused.decisions[1].retry_after, 10s);
  EXPECT_EQ(refused.decisions[2].verdict, Verdict::kAllowed);
  EXPECT_EQ(client_.Peek("a", three).remaining, 1);
  EXPECT_EQ(client_.Peek("b", bucket).remaining, 4);
  EXPECT_EQ(client_.Peek("c", jobs).remaining, 1);
  EXPECT_EQ(client_.Peek("new", three).remaining, 3);
}

TEST_F(StoreOperations, AKeyMayOccurTwiceInAGroup) {
  const Quota three = *Quota::FixedWindow(3, 10s);
  const auto refused = client_.ChargeAll({{"k", 2, &three}, {"k", 2, &three}});
  EXPECT_FALSE(refused.applied);
  EXPECT_EQ(refused.decisions[0].remaining, 1);
  EXPECT_EQ(refused.decisions[1].verdict, Verdict::kLimited);
  const auto granted = client_.ChargeAll({{"k", 2, &three}, {"k", 1, &three}});
  EXPECT_TRUE(granted.applied);
  EXPECT_EQ(granted.decisions[0].remaining, 1);
  EXPECT_EQ(granted.decisions[1].remaining, 0);
  EXPECT_EQ(client_.Peek("k", three).remaining, 0);
}

TEST_F(StoreOperations, ABatchIsAppliedInOrder) {
  const Quota three = *Quota::FixedWindow(3, 10s);
  constexpr std::size_t kCount = 500;
  const std::vector<Charge> charges(kCount, Charge{"k", 1, &three});
  std::vector<Decision> decisions(kCount);
  std::vector<Application> batch(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    batch[i].charges = std::span(charges).subspan(i, 1);
    batch[i].decisions = std::span(decisions).subspan(i, 1);
  }
  batch[100].op = Op::kReset;
  client_.Apply(batch);
  // 3, then none until the reset, then 3 again.
  for (std::size_t i = 0; i < kCount; ++i) {
    const bool granted = i < 3 || (i >= 100 && i <= 103);
    ASSERT_EQ(batch[i].applied, granted) << i;
  }
  EXPECT_EQ(decisions[100].remaining, 3);
  EXPECT_EQ(decisions[103].remaining, 0);
}

TEST_F(StoreOperations, AnEmptyBatchIsDone) { client_.Apply({}); }

TEST_F(StoreOperations, AnEmptyGroupIsGranted) { EXPECT_TRUE(client_.ChargeAll({}).applied); }

TEST_F(StoreOperations, TheLargestNumbersWork) {
  const Quota bucket = *Quota::TokenBucket(kMaxLimit, kMaxLimit / 1024, 24h);
  EXPECT_EQ(client_.Charge("bucket", bucket, kMaxLimit).remaining, 0);
  EXPECT_EQ(client_.Charge("bucket", bucket, kMaxLimit).retry_after, 24h * 1024);
  EXPECT_EQ(client_.Charge("bucket", bucket, kMaxLimit + 1).verdict, Verdict::kNever);
  const Quota log = *Quota::SlidingLog(kMaxLimit, kMaxWindow);
  EXPECT_EQ(client_.Charge("log", log, kMaxLimit - 1).remaining, 1);
  EXPECT_EQ(client_.Charge("log", log, 2).retry_after, kMaxWindow);
  const Quota counter = *Quota::SlidingCounter(kMaxLimit, kMaxWindow, kMaxBuckets);
  EXPECT_EQ(client_.Charge("counter", counter, kMaxLimit).remaining, 0);
  EXPECT_EQ(client_.Charge("counter", counter).verdict, Verdict::kLimited);
  const Quota window = *Quota::FixedWindow(kMaxLimit, kMaxWindow);
  EXPECT_EQ(client_.Charge("window", window, kMaxLimit).remaining, 0);
  EXPECT_EQ(client_.Charge("window", window).verdict, Verdict::kLimited);
  const Quota jobs = *Quota::Concurrency(kMaxLimit, kMaxWindow);
  const Decision held = client_.Charge("jobs", jobs, kMaxLimit);
  EXPECT_EQ(held.remaining, 0);
  EXPECT_EQ(client_.Charge("jobs", jobs).verdict, Verdict::kLimited);
  EXPECT_TRUE(client_.Release("jobs", jobs, held.lease));
  EXPECT_EQ(client_.Peek("jobs", jobs).remaining, kMaxLimit);
}

TEST_F(StoreOperations, KeysAreBytesOfAnyLengthUpToTheLargest) {
  constexpr std::size_t kLargest = 4096;
  const Quota two = *Quota::FixedWindow(2, 10s);
  std::vector<std::string> keys = {
      std::string(), std::string(1, '\0'), std::string(2, '\0'), "k",    "K",   "k ",
      "k\\x00",      "'\"\\;--",           "\xFF\xFE",           "{a}b", "{a}c"};
  for (const std::size_t size : {254U, 255U, 256U, 257U, 1000U, 4095U}) {
    keys.emplace_back(size, 'x');
  }
  // The largest keys, which differ only in their last byte, and in their first.
  keys.push_back(std::string(kLargest - 1, 'x') + 'a');
  keys.push_back(std::string(kLargest - 1, 'x') + 'b');
  keys.push_back('a' + std::string(kLargest - 1, 'x'));
  for (const std::string& key : keys) {
    EXPECT_EQ(client_.Charge(key, two).remaining, 1) << key;
  }
  for (const std::string& key : keys) {
    EXPECT_EQ(client_.Charge(key, two).remaining, 0) << key;
  }
}

TEST_F(StoreOperations, ALongLogIsKept) {
  // 3,000 grants a nanosecond apart; the oldest expires first.
  const Quota log = *Quota::SlidingLog(3000, 10s);
  constexpr std::size_t kGroup = 100;
  const std::vector<Charge> charges(kGroup, Charge{"log", 1, &log});
  std::vector<Decision> decisions(kGroup);
  std::vector<Application> batch(kGroup);
  for (std::size_t i = 0; i < kGroup; ++i) {
    batch[i].charges = std::span(charges).subspan(i, 1);
    batch[i].decisions = std::span(decisions).subspan(i, 1);
  }
  for (int group = 0; group < 30; ++group) {
    client_.Apply(batch);
    for (const Decision& decision : decisions) ASSERT_TRUE(decision.allowed());
    clock_.Advance(1ms);
  }
  EXPECT_EQ(client_.Charge("log", log).retry_after, 10s - 30ms);
  clock_.Advance(10s - 30ms);
  EXPECT_EQ(client_.Peek("log", log).remaining, 100);
}

TEST_F(StoreOperations, NodesShareLimits) {
  const Quota three = *Quota::FixedWindow(3, 10s);
  Client other(*backend_, 1);
  EXPECT_EQ(client_.Charge("k", three).remaining, 2);
  EXPECT_EQ(other.Charge("k", three).remaining, 1);
  EXPECT_EQ(client_.Charge("k", three).remaining, 0);
  other.Reset("k", three);
  EXPECT_EQ(client_.Peek("k", three).remaining, 3);
}

TEST(StoreClock, TheBackendsOwnClockMoves) {
  const std::unique_ptr<Backend> backend = MakeBackend(nullptr);
  Client client(*backend);
  // 1 permit per 50 ms. The first was granted after `begun`, so the second comes 50 ms after it at
  // the earliest, however slow the calls are; a millisecond for clocks that run differently.
  const Quota quota = *Quota::TokenBucket(1, 20, 1s);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.Charge("k", quota).allowed());
  while (!client.Charge("k", quota).allowed()) {
    ASSERT_LT(std::chrono::steady_clock::now() - begun, 10s);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 49ms);
}

// Some of them may have been decided before; none is left without an answer.
TEST_F(StoreOperations, AStoreThatGoesAnswersWhatIsPending) {
  const Quota quota = *Quota::FixedWindow(100, 10s);
  client_.Charge("k", quota);  // connected, and the tables exist
  boost::asio::io_context io(1);
  std::unique_ptr<Store> store = backend_->MakeStore(io);
  constexpr std::size_t kCalls = 50;
  const Charge charge{"k", 1, &quota};
  std::vector<Application> applications(kCalls);
  std::vector<Decision> decisions(kCalls);
  std::vector<int> told(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    applications[i].charges = {&charge, 1};
    applications[i].decisions = {&decisions[i], 1};
    store->Apply({&applications[i], 1}, [&told, i] { ++told[i]; });
  }
  const std::vector<int> told_before = told;  // called by stores that decide immediately
  if (backend_->decides_at_once()) {
    EXPECT_EQ(told_before, std::vector<int>(kCalls, 1));
  }
  store.reset();
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (std::find(told.begin(), told.end(), 0) != told.end() &&
         std::chrono::steady_clock::now() < deadline) {
    io.restart();
    io.run_one_for(10ms);
  }
  // Calls still under way must not be reported twice.
  io.restart();
  io.run_for(100ms);
  for (std::size_t i = 0; i < kCalls; ++i) {
    EXPECT_EQ(told[i], 1) << i;
    if (told_before[i] == 1) {
      EXPECT_TRUE(applications[i].status.ok());
    } else {
      ASSERT_FALSE(applications[i].status.ok()) << i;
      EXPECT_EQ(applications[i].status.error().code, Code::kUnavailable);
    }
  }
  // The server's state lives on; each of the calls was charged once at most.
  const std::int64_t used = 100 - client_.Peek("k", quota).remaining;
  EXPECT_GE(used, 1);
  EXPECT_LE(used, 1 + static_cast<std::int64_t>(kCalls));
}

}  // namespace
}  // namespace weir::store::conformance
