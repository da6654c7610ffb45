#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

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
  batch[2].charges = std::span(charges).subspan(2, 2);  // a refuses, so b is not charged
  batch[2].decisions = std::span(decisions).subspan(2, 2);
  batch[3].charges = std::span(charges).subspan(4, 1);  // b: 5 - 2
  batch[3].decisions = std::span(decisions).subspan(4, 1);
  bool told = false;
  store_.Apply(batch, [&told] { told = true; });
  EXPECT_TRUE(told);
  EXPECT_TRUE(store_.immediate());
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

// Whoever asks again with the same memory is not told of the last time's error.
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
