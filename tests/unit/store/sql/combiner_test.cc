// The combiner between stores and lanes, without the database: a lane's work is taken and
// finished by hand.

#include "store/sql/combiner.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/sql/combining_store.h"

namespace weir::store::sql {
namespace {

using namespace std::chrono_literals;

/// One call of Apply and its answer.
struct Call {
  explicit Call(std::vector<Charge> given, Op op = Op::kCharge)
      : charges(std::move(given)), decisions(charges.size()) {
    application.op = op;
    application.charges = charges;
    application.decisions = decisions;
  }
  Call(Call&&) = delete;

  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  Application application;
  bool done = false;
};

class CombinerTest : public testing::Test {
 protected:
  explicit CombinerTest(CombinerOptions options = {.timeout = 60s}) {
    combiner_.emplace(options, [this] { ++wakes_; });
    store_ = std::make_unique<CombiningStore>(io_, *combiner_, nullptr);
  }

  void Apply(Call& call) {
    store_->Apply(std::span(&call.application, 1), [&call] { call.done = true; });
  }

  /// Does a backend's work, on rows in memory.
  void Run(std::unique_ptr<Batch> batch) {
    for (const Batch::Row& row : batch->rows()) batch->Load(row.id, rows_[row.id]);
    batch->Run(clock_);
    for (const Batch::Write& write : batch->writes()) {
      rows_[std::string(write.id)] = write.state;
    }
    combiner_->Finish(std::move(batch), {});
  }

  void Deliver() {
    io_.restart();
    io_.poll();
  }

  static std::vector<std::string> KeysOf(const Batch& batch) {
    std::vector<std::string> keys;
    for (const Batch::Row& row : batch.rows()) keys.emplace_back(row.key);
    return keys;
  }

  const Quota three_ = *Quota::FixedWindow(3, 10s);
  std::map<std::string, std::string> rows_;
  Nanos clock_ = 0;
  std::atomic<int> wakes_ = 0;
  boost::asio::io_context io_{1};
  std::optional<Combiner> combiner_;
  std::unique_ptr<CombiningStore> store_;
};

TEST_F(CombinerTest, WhatWaitsForATransactionGoesTogetherInTheNext) {
  Call first({{"k", 1, &three_}});
  Apply(first);
  std::unique_ptr<Batch> under_way = combiner_->Take();
  ASSERT_NE(under_way, nullptr);
  Call second({{"k", 1, &three_}});
  Call third({{"k", 2, &three_}});
  Apply(second);
  Apply(third);
  EXPECT_EQ(combiner_->Take(), nullptr);  // the key is in use
  Run(std::move(under_way));
  Deliver();
  EXPECT_TRUE(first.done);
  EXPECT_FALSE(second.done);
  std::unique_ptr<Batch> next = combiner_->Take();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->items().size(), 2U);
  EXPECT_EQ(next->rows().size(), 1U);
  Run(std::move(next));
  Deliver();
  EXPECT_TRUE(second.done && third.done);
  EXPECT_EQ(second.decisions[0].remaining, 1);  // 3 - 1 - 1
  EXPECT_FALSE(third.application.applied);      // 2 of 1
}

TEST_F(CombinerTest, OtherKeysPassByWhatWaits) {
  Call hot({{"hot", 1, &three_}});
  Call hot_too({{"hot", 1, &three_}});
  Call other({{"other", 1, &three_}});
  Apply(hot);
  std::unique_ptr<Batch> under_way = combiner_->Take();
  Apply(hot_too);
  Apply(other);
  std::unique_ptr<Batch> beside = combiner_->Take();
  ASSERT_NE(beside, nullptr);
  EXPECT_EQ(KeysOf(*beside), std::vector<std::string>{"other"});
  Run(std::move(beside));
  Run(std::move(under_way));
  Run(combiner_->Take());
  Deliver();
  EXPECT_TRUE(hot.done && hot_too.done && other.done);
}

TEST_F(CombinerTest, NobodyOvertakesAGroupThatSharesAKeyWithIt) {
  Call a({{"a", 1, &three_}});
  Call group({{"a", 1, &three_}, {"b", 3, &three_}});
  Call b({{"b", 1, &three_}});
  Apply(a);
  std::unique_ptr<Batch> under_way = combiner_->Take();
  Apply(group);
  Apply(b);
  EXPECT_EQ(combiner_->Take(), nullptr);  // "b" is free, but the group came first
  Run(std::move(under_way));
  Run(combiner_->Take());
  Deliver();
  EXPECT_TRUE(group.application.applied);
  EXPECT_FALSE(b.application.applied);
}

TEST_F(CombinerTest, RowsAreDistinctAndInOrder) {
  Call group({{"b", 1, &three_}, {"a", 1, &three_}, {"b", 1, &three_}, {"B", 1, &three_}});
  Apply(group);
  std::unique_ptr<Batch> batch = combiner_->Take();
  EXPECT_EQ(KeysOf(*batch), (std::vector<std::string>{"B", "a", "b"}));
  Run(std::move(batch));
  Deliver();
  EXPECT_EQ(group.decisions[2].remaining, 1);
}

TEST_F(CombinerTest, RowsThatNobodyChargesNeedNotBeThere) {
  Call peek({{"a", 1, &three_}}, Op::kPeek);
  Call refund({{"b", 1, &three_}}, Op::kRefund);
  Call reset({{"c", 0, &three_}}, Op::kReset);
  for (Call* call : {&peek, &refund, &reset}) Apply(*call);
  std::unique_ptr<Batch> batch = combiner_->Take();
  ASSERT_TRUE(batch->FinishLoading());
  batch->Run(0);
  EXPECT_TRUE(batch->writes().empty());
  combiner_->Finish(std::move(batch), {});
  Deliver();
  ASSERT_TRUE(peek.done && refund.done && reset.done);
  EXPECT_EQ(peek.application.decisions[0].remaining, 3);
  EXPECT_TRUE(peek.application.decisions[0].allowed());

  Call look({{"d", 1, &three_}}, Op::kPeek);
  Call charge({{"d", 1, &three_}});
  Apply(look);
  Apply(charge);
  batch = combiner_->Take();
  EXPECT_FALSE(batch->FinishLoading());  // one of them charges
  for (const Batch::Row& row : batch->rows()) batch->Load(row.id, "");
  EXPECT_TRUE(batch->FinishLoading());
  combiner_->Finish(std::move(batch), {});
  Deliver();
}

TEST_F(CombinerTest, OnlyWhatChangedIsWritten) {
  Call peek({{"a", 1, &three_}}, Op::kPeek);
  Call refused({{"b", 4, &three_}});
  Call charge({{"c", 1, &three_}});
  for (Call* call : {&peek, &refused, &charge}) Apply(*call);
  std::unique_ptr<Batch> batch = combiner_->Take();
  for (const Batch::Row& row : batch->rows()) batch->Load(row.id, "");
  ASSERT_TRUE(batch->FinishLoading());
  batch->Run(0);
  ASSERT_EQ(batch->writes().size(), 1U);
  EXPECT_EQ(batch->writes()[0].id, "c");
  EXPECT_EQ(batch->writes()[0].fresh_at, 10'000'000'000);
  combiner_->Finish(std::move(batch), {});
  Deliver();
}

TEST_F(CombinerTest, AFailedTransactionFailsAllOfItAndNoMore) {
  Call first({{"a", 1, &three_}});
  Apply(first);
  combiner_->Finish(combiner_->Take(), Error{Code::kUnavailable, "gone"});
  Call second({{"a", 1, &three_}});
  Apply(second);
  Run(combiner_->Take());
  Deliver();
  ASSERT_TRUE(first.done && second.done);
  EXPECT_EQ(first.application.status.error().message, "gone");
  EXPECT_FALSE(first.application.applied);
  EXPECT_TRUE(second.application.status.ok());
}

TEST_F(CombinerTest, ADamagedRowFailsItsOwnKeyUntilItIsReset) {
  rows_["bad"] = "nonsense";
  Call bad({{"bad", 1, &three_}});
  Call good({{"good", 1, &three_}});
  Apply(bad);
  Apply(good);
  Run(combiner_->Take());
  Call reset({{"bad", 0, &three_}}, Op::kReset);
  Apply(reset);
  Run(combiner_->Take());
  Call again({{"bad", 1, &three_}});
  Apply(again);
  Run(combiner_->Take());
  Deliver();
  EXPECT_EQ(bad.application.status.error().code, Code::kInternal);
  EXPECT_TRUE(good.application.applied);
  EXPECT_TRUE(reset.application.status.ok());
  EXPECT_EQ(again.decisions[0].remaining, 2);
}

TEST_F(CombinerTest, AFreeLaneIsWokenOnceForWhatItMayTake) {
  EXPECT_EQ(combiner_->Take(), nullptr);
  Call first({{"a", 1, &three_}});
  Call second({{"a", 1, &three_}});
  Apply(first);
  EXPECT_EQ(wakes_, 1);
  Apply(second);
  EXPECT_EQ(wakes_, 1);
  Run(combiner_->Take());
  Deliver();
  EXPECT_TRUE(first.done && second.done);
}

TEST_F(CombinerTest, AStoreThatGoesAnswersItsCallersAndLeavesTheirMemoryAlone) {
  auto call = std::make_unique<Call>(std::vector<Charge>{{"a", 1, &three_}});
  Apply(*call);
  std::unique_ptr<Batch> under_way = combiner_->Take();
  store_.reset();
  ASSERT_TRUE(call->done);
  EXPECT_EQ(call->application.status.error().code, Code::kUnavailable);
  call.reset();
  Run(std::move(under_way));
  Deliver();
  store_ = std::make_unique<CombiningStore>(io_, *combiner_, nullptr);
  Call next({{"a", 0, &three_}}, Op::kPeek);
  Apply(next);
  Run(combiner_->Take());
  Deliver();
  EXPECT_EQ(next.decisions[0].remaining, 2);
}

TEST_F(CombinerTest, StopAnswersWhatWaitsAndWhatComes) {
  Call first({{"a", 1, &three_}});
  Apply(first);
  combiner_->Stop({Code::kUnavailable, "closed"});
  Call second({{"a", 1, &three_}});
  Apply(second);
  Deliver();
  EXPECT_EQ(first.application.status.error().message, "closed");
  EXPECT_EQ(second.application.status.error().message, "closed");
}

class SmallCombinerTest : public CombinerTest {
 protected:
  SmallCombinerTest()
      : CombinerTest({.timeout = 60s, .max_applications = 2, .max_keys = 3, .max_waiting = 4}) {}
};

TEST_F(SmallCombinerTest, ATransactionAndTheQueueAreBounded) {
  std::vector<std::unique_ptr<Call>> calls;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    calls.push_back(std::make_unique<Call>(std::vector<Charge>{{key, 1, &three_}}));
    Apply(*calls.back());
  }
  Deliver();
  ASSERT_TRUE(calls[4]->done);  // the fifth of four that may wait
  EXPECT_EQ(calls[4]->application.status.error().code, Code::kResourceExhausted);
  std::unique_ptr<Batch> first = combiner_->Take();
  EXPECT_EQ(KeysOf(*first), (std::vector<std::string>{"a", "b"}));
  std::unique_ptr<Batch> second = combiner_->Take();
  EXPECT_EQ(KeysOf(*second), (std::vector<std::string>{"c", "d"}));
  Run(std::move(second));
  Run(std::move(first));
  // A group that is larger than the bound is sent alone.
  Call group({{"a", 1, &three_}, {"b", 1, &three_}, {"c", 1, &three_}, {"d", 1, &three_}});
  Call after({{"z", 1, &three_}});
  Apply(group);
  Apply(after);
  std::unique_ptr<Batch> third = combiner_->Take();
  EXPECT_EQ(third->rows().size(), 4U);
  Run(std::move(third));
  Run(combiner_->Take());
  Deliver();
  EXPECT_TRUE(group.application.applied && after.application.applied);
}

class HastyCombinerTest : public CombinerTest {
 protected:
  explicit HastyCombinerTest(std::chrono::milliseconds timeout = 20ms)
      : CombinerTest({.timeout = timeout}) {}

  /// One that is answered immediately.
  void Busy() {
    Call call({{"b", 1, &three_}});
    Apply(call);
    Run(combiner_->Take());
    AwaitAnswer(call);
  }

  void AwaitAnswer(const Call& call) {
    io_.restart();
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!call.done && std::chrono::steady_clock::now() < deadline) io_.run_one_for(1s);
    ASSERT_TRUE(call.done);
  }
};

TEST_F(HastyCombinerTest, EverybodyIsAnsweredInTimeWhateverTheLanesDo) {
  auto in_flight = std::make_unique<Call>(std::vector<Charge>{{"a", 1, &three_}});
  Apply(*in_flight);
  std::unique_ptr<Batch> under_way = combiner_->Take();
  Call waiting({{"a", 1, &three_}});
  Apply(waiting);
  AwaitAnswer(*in_flight);
  AwaitAnswer(waiting);
  EXPECT_EQ(in_flight->application.status.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(waiting.application.status.error().code, Code::kDeadlineExceeded);
  // The transaction ends later, with no caller left; waiting calls are not run at all.
  in_flight.reset();
  Run(std::move(under_way));
  EXPECT_EQ(combiner_->Take(), nullptr);
}

TEST_F(HastyCombinerTest, PermitsThatAreGrantedTooLateAreReleased) {
  const Quota flight = *Quota::Concurrency(3, 1h);
  Call late({{"a", 1, &flight}, {"b", 1, &three_}});
  Call leased({{"a", 1, &flight}}, Op::kLease);
  Apply(late);
  Apply(leased);
  std::unique_ptr<Batch> under_way = combiner_->Take();
  ASSERT_EQ(under_way->items().size(), 2U);
  AwaitAnswer(late);
  AwaitAnswer(leased);
  Run(std::move(under_way));
  std::unique_ptr<Batch> releases = combiner_->Take();
  ASSERT_NE(releases, nullptr);
  Run(std::move(releases));
  EXPECT_EQ(combiner_->Take(), nullptr);
  Call look({{"a", 0, &flight}, {"b", 0, &three_}}, Op::kPeek);
  Apply(look);
  Run(combiner_->Take());
  Deliver();
  EXPECT_EQ(look.decisions[0].remaining, 3);
  EXPECT_EQ(look.decisions[1].remaining, 2);  // a charge that is not a permit in flight stays
}

class WatchedCombinerTest : public HastyCombinerTest {
 protected:
  static constexpr auto kTimeout = 200ms;
  WatchedCombinerTest() : HastyCombinerTest(kTimeout) {}
};

// New calls do not wake it while it waits, unless there were none for a whole timeout.
TEST_F(WatchedCombinerTest, NobodyIsAnsweredLateWhateverTheWatcherWaitsFor) {
  for (const auto silence : {0ms, 100ms, 450ms}) {
    Busy();
    std::this_thread::sleep_for(silence);
    Call stuck({{"a", 1, &three_}});
    const auto sent = std::chrono::steady_clock::now();
    Apply(stuck);
    std::unique_ptr<Batch> under_way = combiner_->Take();
    Busy();  // later calls do not postpone it
    AwaitAnswer(stuck);
    const auto took = std::chrono::steady_clock::now() - sent;
    EXPECT_GE(took, kTimeout);
    EXPECT_LT(took, 2 * kTimeout) << "after " << silence.count() << " ms of silence";
    EXPECT_EQ(stuck.application.status.error().code, Code::kDeadlineExceeded);
    Run(std::move(under_way));
  }
}

}  // namespace
}  // namespace weir::store::sql
