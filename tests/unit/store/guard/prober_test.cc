// Calls to a remote store and its prober, with manual timers and a manual clock.

#include "store/guard/prober.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/guard/asio_timers.h"
#include "store/guard/guarded_store.h"

namespace weir::store::guard {
namespace {

using namespace std::chrono_literals;

/// Timers fired by a test.
class ManualTimers final : public Timers {
 public:
  using Set = std::map<Id, std::function<void()>>;
  explicit ManualTimers(Set& set) : set_(set) {}
  ~ManualTimers() override { set_.clear(); }
  Id After(std::chrono::nanoseconds, std::function<void()> run) override {
    set_[++last_] = std::move(run);
    return last_;
  }
  void Cancel(Id id) override { set_.erase(id); }

 private:
  Set& set_;
  Id last_ = 0;
};

/// Holds everything until the test answers it.
class HoldingStore final : public Store {
 public:
  using Held = std::vector<std::pair<std::span<Application>, Done>>;
  explicit HoldingStore(Held& held) : held_(held) {}
  void Apply(std::span<Application> batch, Done done) override {
    held_.emplace_back(batch, std::move(done));
  }

 private:
  Held& held_;
};

void Ring(ManualTimers::Set& timers) {
  for (const auto& [id, run] : std::exchange(timers, {})) run();
}

class ProberTest : public testing::Test {
 protected:
  ProberTest() {
    store_ = std::make_unique<GuardedStore>(std::make_unique<ManualTimers>(alarms_), guard_,
                                            std::make_unique<HoldingStore>(held_));
  }

  /// Answers all held calls, the n-th application of each call with `statuses[n]`.
  void Answer(const std::vector<Status>& statuses) {
    for (auto& [batch, done] : std::exchange(held_, {})) {
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i].status = statuses[i];
      done();
    }
  }
  /// Charges `keys` in one call; records their statuses when they are answered.
  void Ask(const std::vector<std::string>& keys, Op op = Op::kCharge) {
    auto call = std::make_shared<Asked>();
    for (const std::string& key : keys) {
      call->charges.push_back({key, 1, &quota_});
    }
    call->decisions.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Application& application = call->batch.emplace_back();
      application.op = op;
      application.charges = {&call->charges[i], 1};
      application.decisions = {&call->decisions[i], 1};
    }
    store_->Apply(call->batch, [this, call] {
      for (const Application& application : call->batch) told_.push_back(application.status);
    });
  }
  void OpenBreaker() {
    for (int i = 0; i < 5; ++i) guard_.breaker().Failed(guard_.breaker().period());
    ASSERT_EQ(guard_.breaker().state(), BreakerState::kOpen);
  }
  static Status Away() { return Error{Code::kUnavailable, "no connection"}; }

  struct Asked {
    std::vector<Charge> charges;
    std::vector<Decision> decisions;
    std::vector<Application> batch;
  };

  const Quota quota_ = *Quota::FixedWindow(2, 24h);
  ManualClock clock_{1'000'000'000'000};
  Guard guard_{GuardOptions{.timeout = 20ms,
                            .max_waiting = 3,
                            .breaker = {},
                            .cache = {},
                            .clock = &clock_,
                            .quiet = true}};
  ManualTimers::Set alarms_;
  ManualTimers::Set ticks_;
  HoldingStore::Held held_;
  std::vector<Status> told_;  // the store also answers in its destructor
  std::unique_ptr<GuardedStore> store_;
};

TEST_F(ProberTest, KnocksOnceAtATime) {
  Prober prober(std::make_unique<ManualTimers>(ticks_), guard_, *store_);
  OpenBreaker();
  clock_.Advance(50ms);
  Ring(ticks_);
  ASSERT_EQ(held_.size(), 1U);
  EXPECT_EQ(held_[0].first[0].op, Op::kPeek);
  EXPECT_EQ(guard_.breaker().state(), BreakerState::kHalfOpen);
  clock_.Advance(10ms);
  Ring(ticks_);
  EXPECT_EQ(held_.size(), 1U) << "the first probe is still under way";
  Answer({Away()});
  EXPECT_EQ(guard_.breaker().state(), BreakerState::kOpen);
  clock_.Advance(100ms);
  Ring(ticks_);
  Answer({Status()});
  EXPECT_TRUE(guard_.breaker().closed());
}

TEST_F(ProberTest, AsksAStoreThatNobodyElseAsks) {
  Prober prober(std::make_unique<ManualTimers>(ticks_), guard_, *store_);
  guard_.NoteSuccess(0);
  clock_.Advance(999ms);
  Ring(ticks_);
  EXPECT_TRUE(held_.empty()) << "it answered less than a second ago";
  clock_.Advance(1ms);
  Ring(ticks_);
  EXPECT_EQ(held_.size(), 1U);
  clock_.Advance(10ms);
  Ring(ticks_);
  EXPECT_EQ(held_.size(), 1U) << "one question at a time";
  // Still up, so that it is called again a second later; in doubt after a tenth of one.
  Answer({Error{Code::kUnavailable, "no connection"}});
  EXPECT_FALSE(guard_.up());
  clock_.Advance(89ms);
  Ring(ticks_);
  EXPECT_TRUE(held_.empty());
  clock_.Advance(1ms);
  Ring(ticks_);
  EXPECT_EQ(held_.size(), 1U);
}

TEST_F(ProberTest, AnAnswerAfterItsEndChangesNothing) {
  auto prober = std::make_unique<Prober>(std::make_unique<ManualTimers>(ticks_), guard_, *store_);
  OpenBreaker();
  clock_.Advance(50ms);
  Ring(ticks_);
  ASSERT_EQ(held_.size(), 1U);
  prober.reset();
  EXPECT_TRUE(ticks_.empty());
  Answer({Status()});
  EXPECT_EQ(guard_.breaker().state(), BreakerState::kHalfOpen);
}

TEST_F(ProberTest, AProbeThatIsNotAnsweredInTimeHasFailedAndCountsForNobody) {
  std::optional<Status> told;
  store_->Probe(0, [&told](const Status& status) { told = status; });
  clock_.Advance(20ms);
  Ring(alarms_);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error().code, Code::kDeadlineExceeded);
  for (int i = 0; i < 4; ++i) guard_.breaker().Failed(guard_.breaker().period());
  EXPECT_TRUE(guard_.breaker().closed()) << "a fifth failure in a row would have opened it";
}

TEST_F(ProberTest, AQuestionIsNotSentWhileTheBreakerIsOpen) {
  OpenBreaker();
  std::optional<Status> told;
  store_->Ask([&told](const Status& status) { told = status; });
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error().code, Code::kUnavailable);
  EXPECT_TRUE(held_.empty());
}

TEST_F(ProberTest, AfterTheEndQuestionsAndProbesAreRefused) {
  store_->Close();
  int refused = 0;
  const auto count = [&refused](const Status& status) {
    refused += status.ok() ? 0 : 1;
    EXPECT_EQ(status.error().code, Code::kUnavailable);
  };
  store_->Ask(count);
  store_->Probe(0, count);
  EXPECT_EQ(refused, 2);
}

TEST_F(ProberTest, AProbeThatWaitsIsToldAtTheEnd) {
  std::optional<Status> told;
  store_->Probe(0, [&told](const Status& status) { told = status; });
  store_->Close();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error().code, Code::kUnavailable);
}

TEST_F(ProberTest, MoreThanMayWaitAreRefusedAtOnce) {
  Ask({"a", "b", "c"});
  EXPECT_TRUE(told_.empty());
  Ask({"d"});
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].error().code, Code::kResourceExhausted);
  EXPECT_EQ(held_.size(), 1U);
  Answer({Status(), Status(), Status()});
  EXPECT_EQ(told_.size(), 4U);
  Ask({"d"});
  EXPECT_EQ(held_.size(), 1U) << "there is room again";
}

TEST_F(ProberTest, OnlyWhatIsDueTimesOut) {
  Ask({"a"});
  clock_.Advance(15ms);
  Ask({"b"});
  clock_.Advance(5ms);
  Ring(alarms_);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].error().code, Code::kDeadlineExceeded);
  clock_.Advance(14ms);
  Ring(alarms_);
  EXPECT_EQ(told_.size(), 1U);
  clock_.Advance(1ms);
  Ring(alarms_);
  EXPECT_EQ(told_.size(), 2U);
}

TEST_F(ProberTest, MayBeClosedByWhoeverIsToldOfATimeout) {
  Decision decision;
  const Charge charge{"a", 1, &quota_};
  Application application;
  application.charges = {&charge, 1};
  application.decisions = {&decision, 1};
  store_->Apply({&application, 1}, [this] { store_->Close(); });
  Ask({"b"});
  clock_.Advance(20ms);
  Ring(alarms_);
  EXPECT_EQ(application.status.error().code, Code::kDeadlineExceeded);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].error().code, Code::kUnavailable);
  EXPECT_TRUE(alarms_.empty());
}

// The store is up as long as it decides something: a partial failure does not open the breaker.
TEST_F(ProberTest, AStoreThatDecidesPartOfACallIsUp) {
  for (int i = 0; i < 10; ++i) {
    Ask({"a", "b"});
    Answer({Status(), Away()});
  }
  EXPECT_TRUE(guard_.breaker().closed());
  EXPECT_TRUE(guard_.up());
}

TEST_F(ProberTest, WhatFailedIsNotRememberedAsARefusal) {
  guard_.SetChannelUp(true);
  Ask({"a", "b"});
  Answer({Away(), Status()});
  EXPECT_EQ(guard_.cache().counts().hits, 0U);
  Ask({"a"});
  EXPECT_EQ(held_.size(), 1U) << "it is asked of the store again";
}

TEST_F(ProberTest, WhateverMayFreePermitsTellsTheOthers) {
  std::vector<std::uint64_t> freed;
  guard_.SetPublish([&freed](std::span<const std::uint64_t> hashes) {
    freed.insert(freed.end(), hashes.begin(), hashes.end());
  });
  std::vector<std::uint64_t> expected;
  for (const Op op : {Op::kRefund, Op::kReset, Op::kReturn, Op::kSettle}) {
    const std::string key = "k" + std::to_string(static_cast<int>(op));
    expected.push_back(HashOf(key));
    Ask({key}, op);
    Answer({Status()});
  }
  for (const Op op : {Op::kCharge, Op::kPeek, Op::kRelease, Op::kLease, Op::kOverdraw}) {
    Ask({"other"}, op);
    Answer({Status()});
  }
  EXPECT_EQ(freed, expected);
}

TEST(AsioTimersTest, ATimerThatWasCancelledNeverRuns) {
  boost::asio::io_context io;
  AsioTimers timers(io);
  std::vector<int> ran;
  const Timers::Id first = timers.After(1h, [&ran] { ran.push_back(1); });
  Timers::Id third = 0;
  // Both are due: the one that runs first cancels the other, which is already queued.
  timers.After(0ns, [&] {
    ran.push_back(2);
    timers.Cancel(third);
  });
  third = timers.After(0ns, [&ran] { ran.push_back(3); });
  timers.Cancel(first);
  io.run();
  EXPECT_EQ(ran, std::vector<int>{2});
}

}  // namespace
}  // namespace weir::store::guard
