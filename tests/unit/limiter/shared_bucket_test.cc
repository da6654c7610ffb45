// Descriptors of one request that lead to the same bucket, and the charges of policies in every
// mode.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "limiter/permits.h"
#include "store/reserve/reservation.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using test::Asked;
using test::World;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Entries = std::vector<policy::Entry>;

/// A check of several descriptors of one entry each.
class Several {
 public:
  explicit Several(Entries entries, Op op = Op::kCharge) : entries_(std::move(entries)) {
    for (const policy::Entry& entry : entries_) descriptors_.emplace_back(&entry, 1);
    check.request.descriptors = descriptors_;
    check.op = op;
  }
  Several(const Several&) = delete;
  Several& operator=(const Several&) = delete;

  Check& On(Limiter& limiter) {
    limiter.Decide(std::span(&check, 1), [] {});
    return check;
  }
  std::vector<std::int64_t> Left(Limiter& limiter) {
    std::vector<std::int64_t> left;
    for (const PolicyVerdict& verdict : On(limiter).verdicts) {
      left.push_back(verdict.decision.remaining);
    }
    return left;
  }

  Check check;

 private:
  Entries entries_;
  std::vector<policy::Descriptor> descriptors_;
};

/// A policy's verdict; the policy must have applied to the check.
const PolicyVerdict& Of(const Check& check, std::string_view policy) {
  for (const PolicyVerdict& verdict : check.verdicts) {
    if (verdict.policy == policy) return verdict;
  }
  ADD_FAILURE() << policy << " does not apply";
  return check.verdicts.front();
}

constexpr std::string_view kUsers = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 5, window: 1h}}}
  - {name: per-page, match: {page: "*"}, quota: {fixed_window: {limit: 1, window: 1h}}}
)";

TEST(SharedBucket, IsChargedOnceWhateverStandsBetween) {
  World world(kUsers);
  auto limiter = world.NewLimiter();
  Several asked({{"user", "1"}, {"user", "1"}, {"user", "2"}, {"user", "2"}});
  const std::vector<std::int64_t> costs = {1, 3, 2, 1};
  asked.check.request.costs = costs;
  EXPECT_THAT(asked.Left(*limiter), ElementsAre(2, 2, 3, 3)) << "the largest cost of each";
}

TEST(SharedBucket, IsChargedEachTimeIfTheRequestSaysSo) {
  World world(kUsers);
  auto limiter = world.NewLimiter();
  Several asked({{"user", "1"}, {"user", "1"}});
  asked.check.request.each_time = true;
  EXPECT_THAT(asked.Left(*limiter), ElementsAre(4, 3));
}

// Envoy charges a descriptor once, whatever its entries have in common.
TEST(SharedBucket, OfTwoEntriesOfOneDescriptorIsChargedOnce) {
  World world(
      "policies: [{name: api, match: {generic_key: 'api-*', ip: '*'}, "
      "quota: {fixed_window: {limit: 5, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  const Entries both = {{"generic_key", "api-a"}, {"generic_key", "api-b"}, {"ip", "1"}};
  for (const std::int64_t left : {4, 3}) {
    Asked asked = Asked::For(both);
    asked.check.request.each_time = true;
    EXPECT_EQ(asked.On(*limiter).decision.remaining, left);
  }
}

TEST(SharedBucket, OfARefusedRequestIsShownAsNotCharged) {
  World world(kUsers);
  auto limiter = world.NewLimiter();
  Several first(Entries{{"page", "/"}});
  ASSERT_TRUE(first.On(*limiter).decision.allowed());
  Several once({{"user", "1"}, {"user", "1"}, {"page", "/"}});
  EXPECT_THAT(once.Left(*limiter), ElementsAre(5, 5, 0));
  EXPECT_EQ(once.check.policy, "per-page");
  Several each({{"user", "1"}, {"user", "1"}, {"page", "/"}});
  each.check.request.each_time = true;
  EXPECT_THAT(each.Left(*limiter), ElementsAre(5, 5, 0));
  Several alone(Entries{{"user", "1"}}, Op::kPeek);
  alone.check.request.cost = 0;
  EXPECT_THAT(alone.Left(*limiter), ElementsAre(5));
}

TEST(SharedBucket, OfAPolicyOnTrialIsNotedOnce) {
  World world(
      "policies: [{name: trial, match: {user: '*'}, shadow: true, "
      "quota: {fixed_window: {limit: 1, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  Several asked({{"user", "1"}, {"user", "1"}});
  asked.On(*limiter);
  asked.On(*limiter);
  EXPECT_EQ(world.CountsOf("trial").allowed, 1U);
  EXPECT_EQ(world.CountsOf("trial").shadow_limited, 1U);
  TopKeys& top = world.shared().top;
  top.Collect(test::kStart);
  const auto noted = top.Top(TopKeys::Kind::kShadow, 10, test::kStart);
  ASSERT_THAT(noted, SizeIs(1));
  EXPECT_EQ(noted[0].count, 1U);
}

TEST(SharedBucket, OfJobsIsReleasedOnce) {
  World world(
      "policies: [{name: jobs, match: {user: '*'}, quota: {concurrency: {limit: 5, lease: 1h}}}]");
  auto limiter = world.NewLimiter();
  Several asked({{"user", "1"}, {"user", "1"}});
  EXPECT_THAT(asked.Left(*limiter), ElementsAre(4, 4));
  std::string text;
  AppendPermits(text, asked.check);
  EXPECT_THAT(text, SizeIs(kPermitDigits));
  Several release({{"user", "1"}, {"user", "1"}}, Op::kRelease);
  ASSERT_TRUE(ParsePermits(text, release.check.permits).ok());
  EXPECT_TRUE(release.On(*limiter).applied);
  EXPECT_THAT(release.check.verdicts, SizeIs(1));
  EXPECT_FALSE(release.On(*limiter).applied);
}

TEST(Releases, PermitsOfOtherBucketsAreLeftAlone) {
  World world(R"(
policies:
  - {name: jobs, match: {user: "*"}, quota: {concurrency: {limit: 5, lease: 1h}}}
  - {name: rate, match: {user: "*"}, quota: {fixed_window: {limit: 9, window: 1h}}}
  - {name: free, match: {plan: "*"}, unlimited: true}
)");
  auto limiter = world.NewLimiter();
  Asked other = Asked::For({{"user", "2"}});
  std::string text;
  AppendPermits(text, other.On(*limiter));
  Asked release = Asked::For({{"user", "1"}, {"plan", "gold"}}, 1, Op::kRelease);
  ASSERT_TRUE(ParsePermits(text, release.check.permits).ok());
  EXPECT_FALSE(release.On(*limiter).applied);
  EXPECT_THAT(release.check.verdicts, IsEmpty());
  // The same permit named twice is released once.
  Asked twice = Asked::For({{"user", "2"}}, 1, Op::kRelease);
  ASSERT_TRUE(ParsePermits(text + text, twice.check.permits).ok());
  EXPECT_TRUE(twice.On(*limiter).applied);
  Asked again = Asked::For({{"user", "2"}});
  EXPECT_EQ(Of(again.On(*limiter), "jobs").decision.remaining, 4);
}

TEST(Releases, WithoutAPolicyThatHoldsPermitsThereIsNothingToRelease) {
  World world(kUsers);
  auto limiter = world.NewLimiter();
  Asked release = Asked::For({{"user", "1"}}, 1, Op::kRelease);
  release.check.lease = 7;
  EXPECT_FALSE(release.On(*limiter).applied);
  EXPECT_TRUE(release.check.status.ok());
}

TEST(Permits, TheLeaseIsThatOfTheFirstPolicyOnTrialIfNoOtherHoldsAny) {
  World world(R"(
policies:
  - {name: one, match: {user: "*"}, shadow: true, quota: {concurrency: {limit: 5, lease: 1h}}}
  - {name: two, match: {user: "*", page: "*"}, shadow: true, quota: {concurrency: {limit: 5, lease: 2h}}}
)");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}, {"page", "/"}});
  const Check& check = asked.On(*limiter);
  ASSERT_THAT(check.verdicts, SizeIs(2));
  ASSERT_NE(check.verdicts[0].decision.lease, check.verdicts[1].decision.lease);
  EXPECT_NE(check.decision.lease, 0);
  EXPECT_EQ(check.decision.lease, check.verdicts[0].decision.lease);
}

TEST(Permits, AreNotWrittenForALook) {
  Check check;
  Decision held;
  held.lease = 7;
  check.verdicts.push_back({.policy = "p", .key = "a", .decision = held});
  check.op = Op::kPeek;
  std::string text;
  AppendPermits(text, check);
  EXPECT_EQ(text, "");
}

TEST(Overdraw, OnlyAChargeOrALookAtTheDebtOverdraws) {
  World world(
      "policies: [{name: tokens, match: {}, overdraw: true, "
      "quota: {fixed_window: {limit: 10, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  // In debt from the second on: the first counts in full.
  EXPECT_TRUE(Asked::For({}, 8).On(*limiter).decision.allowed());
  EXPECT_EQ(Asked::For({}, 1, Op::kPeek).On(*limiter).decision.remaining, 2) << "as it stands";
  EXPECT_EQ(Asked::For({}, 3, Op::kPeek).On(*limiter).decision.verdict, Verdict::kLimited);
  EXPECT_EQ(Asked::For({}, 4).On(*limiter).decision.verdict, Verdict::kLimited);
  EXPECT_EQ(Asked::For({}, 0, Op::kPeek).On(*limiter).decision.verdict, Verdict::kLimited);
  EXPECT_EQ(Asked::For({}, 5, Op::kRefund).On(*limiter).decision.remaining, 3);  // 10 - 12 + 5
}

constexpr std::string_view kLeased = R"(
policies:
  - {name: hot, match: {user: "*"}, mode: leased, quota: {token_bucket: {capacity: 1000, refill: 100, period: 1s}}}
  - {name: vip, key: boss, mode: leased, quota: {token_bucket: {capacity: 1000, refill: 100, period: 1s}}}
  - {name: exact, match: {user: "*"}, quota: {fixed_window: {limit: 2000, window: 1h}}}
)";

// 100 a second for the longest lease of a quarter of a second are 25 permits by which the store's
// bucket is narrowed.
TEST(Leased, IsChargedUnderTheNarrowedQuotaAndShowsItsOwnLimit) {
  World world(kLeased);
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}});
  const Check& check = asked.On(*limiter);
  ASSERT_THAT(check.verdicts, SizeIs(2));
  EXPECT_EQ(Of(check, "hot").decision.limit, 1000);
  EXPECT_EQ(Of(check, "hot").decision.remaining, 974);
  EXPECT_EQ(Of(check, "exact").decision.remaining, 1999);
  EXPECT_EQ(Asked::Key("boss").On(*limiter).decision.remaining, 974);
}

// A reservation must be settled in the store, so a permit held locally must not be used for it.
TEST(Leased, IsReservedAndSettledUnderTheNarrowedQuota) {
  World world(kLeased);
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}}, 100);
  asked.check.reserve = 60s;
  const std::string text = asked.On(*limiter).reservation;
  ASSERT_FALSE(text.empty());
  Asked settle = Asked::Key({}, 40, Op::kSettle);
  settle.check.settles = text;
  EXPECT_TRUE(settle.On(*limiter).applied);
  EXPECT_EQ(Of(settle.check, "hot").decision.limit, 1000);
  Asked peek = Asked::For({{"user", "1"}}, 0, Op::kPeek);
  EXPECT_EQ(Of(peek.On(*limiter), "hot").decision.remaining, 935);  // 975 - 40
  EXPECT_EQ(Of(peek.check, "exact").decision.remaining, 1960);
}

}  // namespace
}  // namespace weir::limiter
