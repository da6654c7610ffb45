#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace weir::store::memory {
namespace {

using namespace std::chrono_literals;

class MemoryStoreTest : public ::testing::Test {
 protected:
  ManualClock clock_{Nanos{20'000} * 86'400 * 1'000'000'000};
  Engine engine_{
      *Quota::TokenBucket(1, 1),
      EngineOptions{.max_keys = 1000, .keys = KeyStorage::kText, .clock = &clock_, .on_evict = {}}};
  MemoryStore store_{engine_};
  Quota three_ = *Quota::FixedWindow(3, 10s);
  Quota five_ = *Quota::FixedWindow(5, 10s);
};

TEST_F(MemoryStoreTest, SinglesAndGroupsOfOneBatchAreAppliedInOrder) {
  const std::array<Charge, 5> charges = {Charge{"a", 2, &three_}, Charge{"a", 1, &three_},
                                         Charge{"a", 1, &three_}, Charge{"b", 1, &five_},
                                         Charge{"b", 2, &five_}};
  std::array<Decision, 5> decisions;
  std::array<Application, 4> batch;
  batch[0].charges = std::span(charges).subspan(0, 1);  // a: 1 of 3 left
  batch[0].decisions = std::span(decisions).subspan(0, 1);
  batch[1].charges = std::span(charges).subspan(1, 1);  // a: 0 left
  batch[1].decisions = std::span(decisions).subspan(1, 1);
  batch[2].charges = std::span(charges).subspan(2, 2);  // a denies, so b is not charged
  batch[2].decisions = std::span(decisions).subspan(2, 2);
  batch[3].charges = std::span(charges).subspan(4, 1);  // b: 5 - 2
  batch[3].decisions = std::span(decisions).subspan(4, 1);
  bool told = false;
  store_.Apply(batch, [&told] { told = true; });
  EXPECT_TRUE(told);
  EXPECT_TRUE(batch[0].applied);
  EXPECT_EQ(decisions[0].remaining, 1);
  EXPECT_TRUE(batch[1].applied);
  EXPECT_EQ(decisions[1].remaining, 0);
  EXPECT_FALSE(batch[2].applied);
  EXPECT_EQ(decisions[2].verdict, Verdict::kLimited);
  EXPECT_EQ(decisions[2].retry_after, 10s);
  EXPECT_TRUE(batch[3].applied);
  EXPECT_EQ(decisions[4].remaining, 3);
}

// A client of this store (WEIR.APPLY) may send any numbers. Under UBSan nothing overflows,
// whatever they are, and no limit is ever exceeded because of them.
TEST_F(MemoryStoreTest, ExtremeNumbersDoNotOverflow) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<Quota> quotas = {*Quota::TokenBucket(1, 1, kMaxWindow),
                                     *Quota::TokenBucket(kMaxLimit, kMaxLimit, 1000s),
                                     *Quota::FixedWindow(kMaxLimit, kMaxWindow),
                                     *Quota::FixedWindow(1, 1ns),
                                     *Quota::SlidingLog(3, kMaxWindow),
                                     *Quota::SlidingCounter(kMaxLimit, kMaxWindow, 1024),
                                     *Quota::SlidingCounter(5, 1ns, 1),
                                     *Quota::Concurrency(2, kMaxWindow),
                                     *Quota::AnchoredWindow(kMaxLimit, kMaxWindow)};
  const std::vector<std::int64_t> numbers = {kLeast,
                                             kLeast + 1,
                                             -kMaxLimit,
                                             -1,
                                             0,
                                             1,
                                             kMaxLimit,
                                             kMaxLimit + 1,
                                             kMost / 2,
                                             kMost - kMaxWindow.count(),
                                             clock_.Now(),
                                             kMost - 1,
                                             kMost};
  std::mt19937_64 random(7);
  const auto any = [&random](const auto& list) { return list[random() % list.size()]; };
  for (int i = 0; i < 200'000; ++i) {
    const Quota quota = any(quotas);
    const std::string key = "k" + std::to_string(random() % 3);
    const Quota record = *Quota::Concurrency(1, 60s);
    const std::array<Charge, 2> charges = {
        random() % 2 == 0 ? Charge{"r|%reserved:1", 1, &record} : Charge{key, any(numbers), &quota},
        Charge{key, any(numbers), &quota}};
    std::array<Decision, 2> decisions;
    const std::array<Nanos, 2> stamps = {any(numbers), any(numbers)};
    Application application;
    application.op = static_cast<Op>(random() % (static_cast<int>(Op::kSettle) + 1));
    application.lease = any(numbers);
    const bool one = application.op == Op::kRelease || application.op == Op::kLease ||
                     application.op == Op::kReturn;
    application.charges = std::span(charges).last(one ? 1 : 2);
    application.decisions = std::span(decisions).last(one ? 1 : 2);
    if (application.op == Op::kSettle) application.stamps = stamps;
    store_.Apply(std::span(&application, 1), [] {});
    EXPECT_TRUE(application.status.ok());
    for (const Decision& decision : application.decisions) {
      EXPECT_LE(decision.remaining, decision.limit);
      EXPECT_GE(decision.remaining, 0);
    }
    if (random() % 100 == 0) clock_.Advance(std::chrono::nanoseconds(random() % kMaxLimit));
  }
}

TEST_F(MemoryStoreTest, PeekRefundReleaseAndReset) {
  const Quota jobs = *Quota::Concurrency(2, 30s);
  const Charge charge{"j", 1, &jobs};
  Decision decision;
  Application one;
  one.charges = std::span(&charge, 1);
  one.decisions = std::span(&decision, 1);
  const auto apply = [&](Op op) {
    one.op = op;
    store_.Apply(std::span(&one, 1), [] {});
    EXPECT_TRUE(one.status.ok());
  };
  apply(Op::kPeek);
  EXPECT_EQ(decision.remaining, 2);
  apply(Op::kCharge);
  EXPECT_EQ(decision.remaining, 1);
  one.lease = decision.lease;
  apply(Op::kRelease);
  EXPECT_TRUE(one.applied);
  EXPECT_EQ(decision.remaining, 2);
  apply(Op::kRelease);
  EXPECT_FALSE(one.applied);
  apply(Op::kCharge);
  apply(Op::kRefund);
  EXPECT_EQ(decision.remaining, 1) << "permits in flight are released";
  apply(Op::kReset);
  EXPECT_EQ(decision.remaining, 2);
}

// A caller that reuses the same memory does not get the previous error.
TEST_F(MemoryStoreTest, AnOldErrorIsNotLeftInAnAnswer) {
  const std::array<Charge, 2> charges = {Charge{"a", 2, &three_}, Charge{"a", 1, &three_}};
  std::array<Decision, 2> decisions;
  std::array<Application, 2> batch;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].charges = std::span(charges).subspan(i, 1);
    batch[i].decisions = std::span(decisions).subspan(i, 1);
    batch[i].status = Error{Code::kUnavailable, "away"};
  }
  store_.Apply(batch, [] {});
  EXPECT_TRUE(batch[0].status.ok());
  EXPECT_TRUE(batch[1].status.ok());
  EXPECT_EQ(decisions[1].remaining, 0);
}

}  // namespace
}  // namespace weir::store::memory
