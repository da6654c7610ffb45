// What the reactors of a node share about a remote store: its log lines and metrics.

#include "store/guard/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/log_capture.h"

namespace weir::store::guard {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class GuardTest : public testing::Test {
 protected:
  std::string Logged() { return log_.Take(); }
  void Open(Guard& guard, std::uint32_t part) {
    guard.NoteError(part, {Code::kUnavailable, "no connection"});
    for (int i = 0; i < 5; ++i) guard.breaker(part).Failed(guard.breaker(part).period());
    ASSERT_EQ(guard.breaker(part).state(), BreakerState::kOpen);
  }
  void CloseAgain(Guard& guard, std::uint32_t part) {
    clock_.Advance(50ms);
    ASSERT_TRUE(guard.breaker(part).ClaimProbe());
    guard.breaker(part).ProbeSucceeded();
  }
  static std::string Scraped(const Guard& guard) {
    std::string text;
    telemetry::TextWriter out(text);
    guard.Collect(out);
    return text;
  }

  test::LogCapture log_;
  ManualClock clock_{1'000'000'000'000};
  GuardOptions options_{.breaker = {}, .cache = {}, .clock = &clock_};
};

TEST_F(GuardTest, RefusalsAreRememberedWhileTheChannelIsOpen) {
  Guard guard(options_);
  EXPECT_FALSE(guard.cache().on());
  guard.SetChannelUp(true);
  EXPECT_TRUE(guard.cache().on());
  EXPECT_TRUE(guard.health().channel_up);
  EXPECT_THAT(Logged(), HasSubstr("channel between nodes is open"));
  guard.SetChannelUp(true);
  EXPECT_THAT(Logged(), Not(HasSubstr("channel"))) << "nothing has changed";
  guard.SetChannelUp(false);
  EXPECT_FALSE(guard.cache().on());
  EXPECT_THAT(Logged(), HasSubstr("channel between nodes is lost"));
}

TEST_F(GuardTest, FreedKeysAreForgottenAlsoWhereNobodyIsToBeTold) {
  Guard guard(options_);
  const std::uint64_t hash = 7;
  guard.Forget({&hash, 1});
  EXPECT_EQ(guard.cache().counts().forgotten, 1U);
  std::vector<std::uint64_t> told;
  guard.SetPublish([&told](std::span<const std::uint64_t> hashes) {
    told.insert(told.end(), hashes.begin(), hashes.end());
  });
  guard.Forget({&hash, 1});
  EXPECT_EQ(told, std::vector<std::uint64_t>{7});
  guard.OnForgotten({&hash, 1});
  EXPECT_EQ(told.size(), 1U) << "what another node said is not said again";
  EXPECT_EQ(guard.cache().counts().forgotten, 3U);
}

TEST_F(GuardTest, ItsStoreAndItsPartsComeAndGoInTheLog) {
  Guard guard(options_);
  Open(guard, 0);
  EXPECT_THAT(Logged(), HasSubstr(R"("message":"the store is down)"));
  clock_.Advance(250ms);
  CloseAgain(guard, 0);
  const std::string back = Logged();
  EXPECT_THAT(back, HasSubstr("the store answers again; decisions are shared again"));
  EXPECT_THAT(back, HasSubstr(R"("away_ms":300)"));
  Open(guard, 3);
  EXPECT_THAT(Logged(), HasSubstr("part of the store is down"));
  CloseAgain(guard, 3);
  EXPECT_THAT(Logged(), HasSubstr("part of the store answers again"));
}

TEST_F(GuardTest, ThatIsAnothersSaysNothing) {
  options_.quiet = true;
  Guard guard(options_);
  Open(guard, 0);
  guard.SetChannelUp(true);
  const std::string text = Logged();
  EXPECT_THAT(text, Not(HasSubstr("store")));
  EXPECT_THAT(text, Not(HasSubstr("channel")));
}

TEST_F(GuardTest, ErrorsAreLoggedOnceInFiveSeconds) {
  Guard guard(options_);
  const Error away{Code::kUnavailable, "no connection"};
  guard.NoteError(0, away);
  EXPECT_THAT(Logged(), HasSubstr("the store is not responding"));
  clock_.Advance(4999ms);
  guard.NoteError(0, away);
  EXPECT_THAT(Logged(), Not(HasSubstr("the store is not responding")));
  EXPECT_EQ(guard.health().last_error_at, clock_.Now()) << "but it is known";
  clock_.Advance(1ms);
  guard.NoteError(0, away);
  EXPECT_THAT(Logged(), HasSubstr("the store is not responding"));
}

TEST_F(GuardTest, WhatCannotBeDecidedIsLoggedWithoutThePersonsValue) {
  Guard guard(options_);
  guard.NoteUndecided({Code::kInternal, "damaged"}, "default/per-user|user:ada");
  const std::string text = Logged();
  EXPECT_THAT(text, HasSubstr(R"("key":"default/per-user")"));
  EXPECT_THAT(text, Not(HasSubstr("ada")));
}

TEST_F(GuardTest, AScrapeTellsHowTheStoreIs) {
  Guard guard(options_);
  const auto metrics = guard.AddMetrics();
  const auto others = guard.AddMetrics();
  metrics->calls.Add(3);
  others->calls.Add(4);
  metrics->timeouts.Add(2);
  guard.NoteSuccess(0);
  guard.SetChannelUp(true);
  std::string text = Scraped(guard);
  EXPECT_THAT(text, HasSubstr("\nweir_store_up 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_breaker_state 0\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_parts_away 0\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_channel_up 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_calls_total 7\n")) << "of all reactors";
  EXPECT_THAT(text, HasSubstr("\nweir_store_timeouts_total 2\n"));
  guard.SetChannelUp(false);
  Open(guard, 0);
  Open(guard, 2);
  text = Scraped(guard);
  EXPECT_THAT(text, HasSubstr("\nweir_store_up 0\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_breaker_state 2\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_parts_away 2\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_channel_up 0\n"));
}

TEST_F(GuardTest, SeveralStoresAreToldApartByTheirNames) {
  Guard one(options_);
  Guard two(options_);
  two.NoteSuccess(0);
  const std::array guards = {NamedGuard{"hot", &one}, NamedGuard{"cold", &two}};
  std::string text;
  telemetry::TextWriter out(text);
  CollectGuards(guards, out);
  EXPECT_THAT(text, HasSubstr("\nweir_store_up{store=\"hot\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_store_up{store=\"cold\"} 1\n"));
}

}  // namespace
}  // namespace weir::store::guard
