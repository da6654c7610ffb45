// A configuration of Envoy's rate limit service, decided as that service decides it.

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "unit/limiter/fixture.h"

namespace weir::limiter::test {
namespace {

using policy::Descriptor;
using policy::Entry;
using std::chrono::seconds;

constexpr std::string_view kConfig = R"(
domain: d
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: user
    value: banned
    rate_limit: { unit: minute, requests_per_unit: 0 }
  - key: user
    value: trial*
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: kind
    value: read
    rate_limit: { unit: minute, requests_per_unit: 1, name: reads }
  - key: path
    value: /big
    rate_limit: { unit: minute, requests_per_unit: 3, name: big, replaces: [{ name: reads }] }
)";

class EnvoyLimits : public ::testing::Test {
 protected:
  /// A cost that the caller reports for a single descriptor.
  const Check& Report(std::vector<Entry> descriptor, std::int64_t cost) {
    const std::uint8_t reported = 1;
    check_.request.costs = std::span(&cost, 1);
    check_.request.reported = std::span(&reported, 1);
    Ask({std::move(descriptor)});
    check_.request.costs = {};
    check_.request.reported = {};
    return check_;
  }

  const Check& Ask(std::vector<std::vector<Entry>> descriptors, std::int64_t cost = 1) {
    check_.request.cost = cost;
    entries_ = std::move(descriptors);
    descriptors_.assign(entries_.begin(), entries_.end());
    check_.request.domain = "d";
    check_.request.descriptors = descriptors_;
    check_.verdicts.clear();
    limiter_->Decide(std::span(&check_, 1), [] {});
    return check_;
  }

  World world_{kConfig};
  std::unique_ptr<PolicyLimiter> limiter_ = world_.NewLimiter();
  std::vector<std::vector<Entry>> entries_;
  std::vector<Descriptor> descriptors_;
  Check check_;
};

TEST_F(EnvoyLimits, EachValueHasItsOwnWindow) {
  EXPECT_TRUE(Ask({{{"user", "a"}}}).decision.allowed());
  EXPECT_TRUE(Ask({{{"user", "a"}}}).decision.allowed());
  EXPECT_FALSE(Ask({{{"user", "a"}}}).decision.allowed());
  EXPECT_TRUE(Ask({{{"user", "b"}}}).decision.allowed());
  // The world began on a whole minute, so the window ends 60 s later.
  EXPECT_EQ(Ask({{{"user", "a"}}}).decision.retry_after, seconds(60));
  world_.clock().Advance(seconds(60));
  EXPECT_TRUE(Ask({{{"user", "a"}}}).decision.allowed());
}

TEST_F(EnvoyLimits, ALimitOfZeroIsNeverMetAndIsShown) {
  const Check& check = Ask({{{"user", "banned"}}});
  EXPECT_EQ(check.decision.verdict, Verdict::kNever);
  EXPECT_EQ(check.decision.limit, 0);
  EXPECT_EQ(check.decision.remaining, 0);
}

TEST_F(EnvoyLimits, InARefusedRequestTheOthersShowThatNothingWasCharged) {
  Ask({{{"user", "a"}}}, 2);
  const Check& check = Ask({{{"path", "/big"}}, {{"user", "a"}}});
  ASSERT_EQ(check.verdicts.size(), 2U);
  EXPECT_TRUE(check.verdicts[0].decision.allowed());
  EXPECT_EQ(check.verdicts[0].decision.remaining, 3);
  EXPECT_FALSE(check.verdicts[1].decision.allowed());
}

TEST_F(EnvoyLimits, ABucketAskedTwiceIsChargedTwiceIfTheDoorSaysSo) {
  check_.request.each_time = true;
  const Check& both = Ask({{{"path", "/big"}}, {{"path", "/big"}}});
  EXPECT_EQ(both.verdicts.at(0).decision.remaining, 2);
  EXPECT_EQ(both.verdicts.at(1).decision.remaining, 1);
  const Check& refused = Ask({{{"path", "/big"}}, {{"path", "/big"}}});
  EXPECT_FALSE(refused.decision.allowed());
  EXPECT_EQ(refused.verdicts.at(0).decision.remaining, 1);
}

TEST_F(EnvoyLimits, ChargingEachDecidesEveryLimitForItself) {
  world_.Publish(std::string("charge: each") + std::string(kConfig));
  Ask({{{"user", "a"}}}, 2);
  const Check& check = Ask({{{"path", "/big"}}, {{"user", "a"}}});
  EXPECT_FALSE(check.decision.allowed());
  EXPECT_EQ(check.verdicts[0].decision.remaining, 2);
  EXPECT_EQ(Ask({{{"path", "/big"}}}).decision.remaining, 1);
}

TEST_F(EnvoyLimits, ChargingAlwaysCountsWhatIsRefused) {
  world_.Publish(std::string("charge: always") + std::string(kConfig));
  EXPECT_TRUE(Ask({{{"path", "/big"}}}, 2).decision.allowed());
  EXPECT_FALSE(Ask({{{"path", "/big"}}}, 2).decision.allowed());
  // 4 of 3: not even a cost of 0 passes, until the window ends.
  EXPECT_FALSE(Ask({{{"path", "/big"}}}, 0).decision.allowed());
  EXPECT_FALSE(Ask({{{"path", "/big"}}}, 1).decision.allowed());
  world_.clock().Advance(seconds(60));
  EXPECT_TRUE(Ask({{{"path", "/big"}}}, 0).decision.allowed());
}

// With the file as it is: reports are charged, and no other denied request is.
TEST_F(EnvoyLimits, WhatIsReportedCountsWhetherItFitsOrNot) {
  EXPECT_TRUE(Report({{"path", "/big"}}, 0).decision.allowed());
  EXPECT_EQ(Report({{"path", "/big"}}, 2).decision.remaining, 1);
  EXPECT_FALSE(Ask({{{"path", "/big"}}}, 2).decision.allowed());
  EXPECT_TRUE(Report({{"path", "/big"}}, 0).decision.allowed());
  EXPECT_EQ(Report({{"path", "/big"}}, 2).decision.verdict, Verdict::kLimited);
  const Check& next = Report({{"path", "/big"}}, 0);  // 4 of 3
  EXPECT_EQ(next.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(next.decision.retry_after, seconds(60));
  world_.clock().Advance(seconds(60));
  EXPECT_TRUE(Report({{"path", "/big"}}, 0).decision.allowed());
}

TEST_F(EnvoyLimits, WithAllOrNoneAReportIsAChargeLikeAnyOther) {
  world_.Publish(std::string("charge: all_or_none") + std::string(kConfig));
  EXPECT_TRUE(Report({{"path", "/big"}}, 2).decision.allowed());
  EXPECT_FALSE(Report({{"path", "/big"}}, 2).decision.allowed());
  EXPECT_TRUE(Ask({{{"path", "/big"}}}).decision.allowed());
}

TEST_F(EnvoyLimits, AReportOnALimitThatCameWithItCountsToo) {
  const Quota own = *Quota::FixedWindow(5, seconds(60));
  const Quota* const owns = &own;
  check_.request.overrides = std::span(&owns, 1);
  EXPECT_TRUE(Report({{"own", "x"}}, 4).decision.allowed());
  EXPECT_FALSE(Report({{"own", "x"}}, 4).decision.allowed());
  EXPECT_FALSE(Report({{"own", "x"}}, 0).decision.allowed());
}

// A gateway checks with a cost of 0 first and reports the actual usage afterwards.
TEST_F(EnvoyLimits, ABudgetThatIsChargedAfterwardsEnds) {
  world_.Publish(R"(
domain: d
policies:
  - name: tokens
    match: { user: "*" }
    overdraw: true
    quota: { fixed_window: { limit: 100, window: 1m } }
)");
  EXPECT_TRUE(Ask({{{"user", "a"}}}, 0).decision.allowed());
  EXPECT_EQ(Ask({{{"user", "a"}}}, 60).decision.remaining, 40);
  EXPECT_TRUE(Ask({{{"user", "a"}}}, 0).decision.allowed());
  const Check& report = Ask({{{"user", "a"}}}, 60);
  EXPECT_EQ(report.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(report.decision.remaining, 0);
  const Check& next = Ask({{{"user", "a"}}}, 0);
  EXPECT_EQ(next.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(next.decision.retry_after, seconds(60));
  world_.clock().Advance(seconds(60));
  EXPECT_TRUE(Ask({{{"user", "a"}}}, 0).decision.allowed());
}

TEST_F(EnvoyLimits, AnyPolicyCanBeOverdrawnByTheRequest) {
  check_.op = store::Op::kOverdraw;
  const Check& check = Ask({{{"path", "/big"}}}, 5);
  EXPECT_TRUE(check.applied);
  EXPECT_EQ(check.decision.verdict, Verdict::kLimited);
  check_.op = store::Op::kCharge;
  EXPECT_FALSE(Ask({{{"path", "/big"}}}).decision.allowed());
}

TEST_F(EnvoyLimits, ShadowModeCountsAndNeverBlocks) {
  EXPECT_TRUE(Ask({{{"user", "trial-1"}}}).decision.allowed());
  const Check& second = Ask({{{"user", "trial-1"}}});
  EXPECT_TRUE(second.decision.allowed());
  ASSERT_EQ(second.verdicts.size(), 1U);
  EXPECT_TRUE(second.verdicts[0].shadow);
  EXPECT_FALSE(second.verdicts[0].decision.allowed());
  // Another value of the same wildcard has a separate window.
  EXPECT_TRUE(Ask({{{"user", "trial-2"}}}).verdicts[0].decision.allowed());
}

TEST_F(EnvoyLimits, AReplacedLimitIsNeitherAskedNorCharged) {
  for (int i = 0; i < 3; ++i) {
    const Check& both = Ask({{{"kind", "read"}}, {{"path", "/big"}}});
    EXPECT_TRUE(both.decision.allowed());
    ASSERT_EQ(both.verdicts.size(), 1U);
    EXPECT_EQ(both.verdicts[0].policy, "big");
    EXPECT_EQ(both.verdicts[0].descriptor, 1U);
  }
  EXPECT_FALSE(Ask({{{"kind", "read"}}, {{"path", "/big"}}}).decision.allowed());
  // Nothing was charged to "reads" in between: its one request is still available.
  EXPECT_TRUE(Ask({{{"kind", "read"}}}).decision.allowed());
  EXPECT_FALSE(Ask({{{"kind", "read"}}}).decision.allowed());
}

}  // namespace
}  // namespace weir::limiter::test
