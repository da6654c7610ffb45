#include "store/guard/guarded_store.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/guard/prober.h"
#include "store/memory/memory_store.h"

namespace weir::store::guard {
namespace {

using namespace std::chrono_literals;

/// Holds its calls until the test lets it answer.
class DistantStore final : public Store {
 public:
  explicit DistantStore(Engine& engine) : memory_(engine) {}

  void Apply(std::span<Application> batch, Done done) override {
    ++calls;
    if (down_part != 0 && PartOf(batch[0]) == down_part) {
      for (Application& application : batch) {
        application.status = Error{Code::kUnavailable, "no connection to the part"};
      }
      return done();
    }
    if (failing) {
      for (Application& application : batch) application.status = *failing;
      return done();
    }
    if (down) {
      for (Application& application : batch) {
        application.status = Error{Code::kUnavailable, "no connection"};
      }
      return done();
    }
    if (!holding) return memory_.Apply(batch, std::move(done));
    held.push_back({batch, std::move(done)});
  }
  // A key's leading digit is its part.
  std::uint32_t PartOf(const Application& application) const override {
    const char first = application.charges[0].key[0];
    return first >= '1' && first <= '9' ? static_cast<std::uint32_t>(first - '0') : 0;
  }
  std::string ProbeKey(std::uint32_t part) const override {
    return part == 0 ? "probe" : std::to_string(part) + "probe";
  }

  void AnswerHeld() {
    for (auto& [batch, done] : std::exchange(held, {})) memory_.Apply(batch, std::move(done));
  }

  std::optional<Error> failing;
  bool down = false;
  std::uint32_t down_part = 0;
  bool holding = false;
  int calls = 0;
  std::vector<std::pair<std::span<Application>, Done>> held;

 private:
  memory::MemoryStore memory_;
};

/// One charge with memory that can be freed while the store is still deciding.
struct Asked {
  Asked(std::string name, const Quota& with, Op op = Op::kCharge)
      : key(std::move(name)), quota(with) {
    charge = {key, 1, &quota};
    application.op = op;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
  }
  std::string key;
  Quota quota;
  Charge charge;
  Decision decision;
  Application application;
  bool told = false;

  void On(Store& store) {
    store.Apply({&application, 1}, [this] { told = true; });
  }
};

class GuardedStoreTest : public ::testing::Test {
 protected:
  GuardedStoreTest() {
    auto inner = std::make_unique<DistantStore>(engine_);
    inner_ = inner.get();
    store_ = std::make_unique<GuardedStore>(io_, guard_, std::move(inner));
    guard_.SetPublish([this](std::span<const std::uint64_t> hashes) {
      published_.insert(published_.end(), hashes.begin(), hashes.end());
    });
  }

  /// Runs the reactor until `done` holds.
  void RunUntil(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(10ms);
    }
    ASSERT_TRUE(done());
  }

  const Quota quota_ = *Quota::FixedWindow(2, 24h);
  Engine engine_{*Quota::TokenBucket(1, 1)};
  boost::asio::io_context io_{1};
  Guard guard_{GuardOptions{.timeout = 20ms, .breaker = {}, .cache = {}}};
  DistantStore* inner_ = nullptr;
  std::unique_ptr<GuardedStore> store_;
  std::vector<std::uint64_t> published_;
};

TEST(GuardOptionsTest, TellsOfSettingsThatBreakThePromiseOfASecond) {
  GuardOptions options;
  EXPECT_TRUE(DoubtsAbout(options).empty());
  options.timeout = 599ms;  // and the breaker's longest wait of 400 ms: 999
  EXPECT_TRUE(DoubtsAbout(options).empty());
  options.timeout = 600ms;
  EXPECT_EQ(DoubtsAbout(options).size(), 1U);
  options.breaker.failures = 1000;
  EXPECT_EQ(DoubtsAbout(options).size(), 2U);
}

TEST_F(GuardedStoreTest, AnswersWithWhatTheStoreSays) {
  inner_->holding = true;
  Asked first("k", quota_);
  first.On(*store_);
  EXPECT_FALSE(first.told);
  inner_->AnswerHeld();
  ASSERT_TRUE(first.told);
  EXPECT_TRUE(first.application.applied);
  EXPECT_EQ(first.decision.remaining, 1);
}

TEST_F(GuardedStoreTest, AnswersInTimeThoughTheStoreDoesNotAndDropsWhatComesLater) {
  inner_->holding = true;
  auto asked = std::make_unique<Asked>("k", quota_);
  const auto began = std::chrono::steady_clock::now();
  asked->On(*store_);
  RunUntil([&] { return asked->told; });
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  ASSERT_FALSE(asked->application.status.ok());
  EXPECT_EQ(asked->application.status.error().code, Code::kDeadlineExceeded);
  asked.reset();  // ASan detects a write to it from here on
  inner_->AnswerHeld();
}

TEST_F(GuardedStoreTest, ALateAnswerStillCountsInTheStore) {
  inner_->holding = true;
  Asked late("k", quota_);
  late.On(*store_);
  RunUntil([&] { return late.told; });
  inner_->AnswerHeld();
  inner_->holding = false;
  Asked next("k", quota_);
  next.On(*store_);
  EXPECT_EQ(next.decision.remaining, 0);  // 2 - the late one - this one
}

// The caller was told that the store did not answer, and cannot release permits it does not know.
TEST_F(GuardedStoreTest, PermitsThatAreGrantedTooLateAreReleased) {
  const Quota flight = *Quota::Concurrency(10, 1h);
  inner_->holding = true;
  std::vector<std::unique_ptr<Asked>> late;
  for (int i = 0; i < 10; ++i) {
    late.push_back(std::make_unique<Asked>("k", flight, i % 2 == 0 ? Op::kCharge : Op::kLease));
    late.back()->On(*store_);
  }
  RunUntil([&] { return late.back()->told; });
  EXPECT_NE(guard_.breaker().state(), BreakerState::kClosed);
  inner_->AnswerHeld();
  inner_->AnswerHeld();  // the releases
  EXPECT_EQ(engine_.Peek("k", flight, 0).remaining, 10);
}

TEST_F(GuardedStoreTest, PermitsThatAreGrantedInTimeAreTheCallers) {
  const Quota flight = *Quota::Concurrency(2, 1h);
  Asked asked("k", flight);
  asked.On(*store_);
  EXPECT_NE(asked.decision.lease, 0);
  EXPECT_EQ(engine_.Peek("k", flight, 0).remaining, 1);
}

TEST_F(GuardedStoreTest, FailsAtOnceWhileTheBreakerIsOpen) {
  inner_->down = true;
  for (int i = 0; i < 5; ++i) Asked("k", quota_).On(*store_);
  EXPECT_EQ(guard_.breaker().state(), BreakerState::kOpen);
  const int calls = inner_->calls;
  Asked asked("k", quota_);
  asked.On(*store_);
  ASSERT_TRUE(asked.told);
  EXPECT_EQ(asked.application.status.error().code, Code::kUnavailable);
  EXPECT_EQ(inner_->calls, calls);
}

TEST_F(GuardedStoreTest, QuestionsThatCannotBeDecidedDoNotOpenTheBreaker) {
  for (const Code code : {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kInternal,
                          Code::kAlreadyExists, Code::kNotFound, Code::kResourceExhausted}) {
    inner_->failing = Error{code, "damaged"};
    for (int i = 0; i < 40; ++i) {
      Asked asked("k", quota_);
      asked.On(*store_);
      EXPECT_EQ(asked.application.status.error().code, code);
    }
    EXPECT_TRUE(guard_.breaker().closed()) << CodeName(code);
  }
  inner_->failing.reset();
  Asked another("l", quota_);
  another.On(*store_);
  EXPECT_TRUE(another.application.status.ok());
}

TEST_F(GuardedStoreTest, NorDoTheyKeepItClosed) {
  for (int i = 0; i < 5; ++i) {
    inner_->failing = Error{Code::kUnavailable, "no connection"};
    Asked("k", quota_).On(*store_);
    inner_->failing = Error{Code::kFailedPrecondition, "different slots"};
    Asked("k", quota_).On(*store_);
  }
  EXPECT_EQ(guard_.breaker().state(), BreakerState::kOpen);
}

TEST_F(GuardedStoreTest, AStoreThatLetsNobodyInIsAway) {
  inner_->failing = Error{Code::kUnauthenticated, "wrong password"};
  for (int i = 0; i < 5; ++i) Asked("k", quota_).On(*store_);
  EXPECT_EQ(guard_.breaker().state(), BreakerState::kOpen);
}

TEST_F(GuardedStoreTest, TheProberClosesTheBreakerWhenTheStoreIsBack) {
  Prober prober(io_, guard_, *store_);
  inner_->down = true;
  // No checks: the prober itself detects it.
  RunUntil([&] { return guard_.breaker().state() == BreakerState::kOpen; });
  EXPECT_FALSE(guard_.health().up);
  EXPECT_EQ(guard_.health().last_error, "no connection");
  inner_->down = false;
  const auto back = std::chrono::steady_clock::now();
  RunUntil([&] { return guard_.breaker().closed(); });
  EXPECT_LT(std::chrono::steady_clock::now() - back, 1s);
  EXPECT_TRUE(guard_.health().up);
}

TEST_F(GuardedStoreTest, AnswersKnownRefusalsItself) {
  guard_.SetChannelUp(true);
  for (int i = 0; i < 3; ++i) Asked("k", quota_).On(*store_);  // the third is denied
  const int calls = inner_->calls;
  Asked asked("k", quota_);
  asked.On(*store_);
  ASSERT_TRUE(asked.told);
  EXPECT_EQ(asked.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(inner_->calls, calls);
  EXPECT_EQ(guard_.cache().counts().hits, 1U);
}

TEST_F(GuardedStoreTest, ARefundOpensTheKeyAgainAndTellsTheOthers) {
  guard_.SetChannelUp(true);
  for (int i = 0; i < 3; ++i) Asked("k", quota_).On(*store_);
  Asked("k", quota_, Op::kRefund).On(*store_);
  EXPECT_EQ(published_, std::vector<std::uint64_t>{HashOf("k")});
  Asked asked("k", quota_);
  asked.On(*store_);
  EXPECT_TRUE(asked.decision.allowed());
}

TEST_F(GuardedStoreTest, AMixedBatchAsksTheStoreForTheRestOnly) {
  guard_.SetChannelUp(true);
  for (int i = 0; i < 3; ++i) Asked("k", quota_).On(*store_);
  Asked known("k", quota_);
  Asked fresh("l", quota_);
  std::vector<Application> batch = {fresh.application, known.application, fresh.application};
  std::vector<Decision> decisions(3);
  for (std::size_t i = 0; i < 3; ++i) batch[i].decisions = {&decisions[i], 1};
  bool told = false;
  store_->Apply(batch, [&told] { told = true; });
  ASSERT_TRUE(told);
  EXPECT_EQ(decisions[0].remaining, 1);
  EXPECT_FALSE(decisions[1].allowed());
  EXPECT_EQ(decisions[2].remaining, 0);
  EXPECT_TRUE(batch[2].applied);
}

TEST_F(GuardedStoreTest, APartThatIsAwayLeavesTheOthersAlone) {
  inner_->down_part = 2;
  for (int i = 0; i < 5; ++i) Asked("2k", quota_).On(*store_);
  EXPECT_EQ(guard_.breaker(2).state(), BreakerState::kOpen);
  EXPECT_TRUE(guard_.breaker(1).closed());
  // All three in one batch: each part is called separately.
  Asked first("1k", quota_);
  Asked second("2k", quota_);
  Asked third("3k", quota_);
  std::vector<Application> batch = {first.application, second.application, third.application};
  const int calls = inner_->calls;
  int told = 0;
  store_->Apply(batch, [&told] { ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(inner_->calls, calls + 2);
  EXPECT_TRUE(batch[0].status.ok());
  EXPECT_EQ(batch[1].status.error().code, Code::kUnavailable);
  EXPECT_TRUE(batch[2].status.ok());
  EXPECT_EQ(first.decision.remaining, 1);
  EXPECT_EQ(third.decision.remaining, 1);
  EXPECT_TRUE(guard_.health().up);
  EXPECT_EQ(guard_.health().breaker, BreakerState::kOpen);
}

TEST_F(GuardedStoreTest, AHangingPartDoesNotTakeTheOthersAnswersAlong) {
  inner_->holding = true;
  Asked hanging("1k", quota_);
  Asked other("2k", quota_);
  std::vector<Application> batch = {hanging.application, other.application};
  bool told = false;
  store_->Apply(batch, [&told] { told = true; });
  ASSERT_EQ(inner_->held.size(), 2U);
  inner_->held.erase(inner_->held.begin());  // never answered
  inner_->AnswerHeld();
  RunUntil([&] { return told; });
  EXPECT_EQ(batch[0].status.error().code, Code::kDeadlineExceeded);
  ASSERT_TRUE(batch[1].status.ok());
  EXPECT_EQ(other.decision.remaining, 1);
}

TEST_F(GuardedStoreTest, TheProberAsksThePartThatFailed) {
  Prober prober(io_, guard_, *store_);
  inner_->down_part = 2;
  for (int i = 0; i < 5; ++i) Asked("2k", quota_).On(*store_);
  ASSERT_EQ(guard_.breaker(2).state(), BreakerState::kOpen);
  // The store as a whole keeps answering.
  const auto began = std::chrono::steady_clock::now();
  RunUntil([&] { return std::chrono::steady_clock::now() - began > 300ms; });
  EXPECT_FALSE(guard_.breaker(2).closed());
  inner_->down_part = 0;
  RunUntil([&] { return guard_.breaker(2).closed(); });
}

TEST_F(GuardedStoreTest, ThousandsOfCallsAtOnceAreGivenBackInAnyOrder) {
  inner_->holding = true;
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 10'000; ++i) {  // more than the number kept for reuse
    all.push_back(std::make_unique<Asked>("k" + std::to_string(i), quota_));
    all.back()->On(*store_);
  }
  inner_->AnswerHeld();
  for (const auto& asked : all) {
    ASSERT_TRUE(asked->told);
  }
  inner_->holding = false;
  Asked next("k", quota_);
  next.On(*store_);
  EXPECT_EQ(next.decision.remaining, 1);
}

TEST_F(GuardedStoreTest, CloseTellsWhoeverWaits) {
  inner_->holding = true;
  Asked asked("k", quota_);
  asked.On(*store_);
  store_->Close();
  ASSERT_TRUE(asked.told);
  EXPECT_EQ(asked.application.status.error().code, Code::kUnavailable);
  Asked later("k", quota_);
  later.On(*store_);
  EXPECT_TRUE(later.told);
}

}  // namespace
}  // namespace weir::store::guard
