#include "limiter/permits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using test::Asked;
using test::World;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string TextOf(const Check& check) {
  std::string text;
  AppendPermits(text, check);
  return text;
}

/// Releases the permits named in `text` on behalf of `user`.
bool Release(Limiter& limiter, std::string_view user, std::string_view text) {
  Asked release = Asked::For({{"user", user}}, 1, Op::kRelease);
  EXPECT_TRUE(ParsePermits(text, release.check.permits).ok()) << text;
  const Check& check = release.On(limiter);
  EXPECT_TRUE(check.status.ok());
  return check.applied;
}

std::int64_t Left(World& world, std::string_view key, const Quota& quota) {
  return world.engine().Peek(key, quota, 0).remaining;
}

TEST(Permits, ABucketsTagIsTheSameOnEveryNode) {
  // FNV-1a of "" is cbf29ce484222325, of "a" af63dc4c8601ec8c; folded: the halves' difference.
  EXPECT_EQ(BucketTag(""), 0xcbf29ce4U ^ 0x84222325U);
  EXPECT_EQ(BucketTag("a"), 0x296230c0U);
}

TEST(Permits, AreReadAsTheyWereWritten) {
  Check check;
  Decision held;
  held.lease = 0x0123456789abcdef;
  check.verdicts.push_back({.policy = "p", .key = "a", .decision = held});
  check.verdicts.push_back({.policy = "p", .descriptor = 1, .key = "a", .decision = held});
  check.verdicts.push_back({.policy = "rate", .key = "b", .decision = {}});
  held.lease = 7;
  check.verdicts.push_back({.policy = "q", .key = "", .decision = held});
  const std::string text = TextOf(check);
  EXPECT_EQ(text,
            "296230c00123456789abcdef"
            "4fd0bfc10000000000000007");
  std::vector<Permit> permits;
  ASSERT_TRUE(ParsePermits(text, permits).ok());
  EXPECT_THAT(permits, ElementsAre(Permit{0x296230c0, 0x0123456789abcdef}, Permit{0x4fd0bfc1, 7}));
  check.decision.verdict = Verdict::kLimited;
  EXPECT_EQ(TextOf(check), "");
}

TEST(Permits, AnythingElseIsRefused) {
  std::vector<Permit> permits;
  const std::string one = "296230c00000000000000007";
  for (const std::string& text :
       {std::string(), std::string("7"), one.substr(1), one + "0", std::string(24, ' '),
        std::string("296230c00000000000000000"), std::string("296230c0ffffffffffffffff"),
        std::string("296230c0-000000000000007"), std::string("-96230c00000000000000007"),
        std::string("0x6230c00000000000000007"), one + std::string(24, 'g'),
        std::string(kPermitDigits * (kMaxPermits + 1), '1')}) {
    permits = {{1, 1}};
    const Status parsed = ParsePermits(text, permits);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_THAT(permits, IsEmpty());
  }
  EXPECT_TRUE(ParsePermits(std::string(kPermitDigits * kMaxPermits, '1'), permits).ok());
  EXPECT_EQ(permits.size(), kMaxPermits);
}

constexpr std::string_view kThree = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {concurrency: {limit: 2, lease: 30s}}}
  - {name: all, match: {}, quota: {concurrency: {limit: 3, lease: 30s}}}
  - {name: trial, match: {}, shadow: true, quota: {concurrency: {limit: 4, lease: 10s}}}
)";

TEST(Permits, AReleaseFreesThoseOfEveryPolicyAndNobodyElses) {
  World world(kThree);
  auto limiter = world.NewLimiter();
  Asked one = Asked::For({{"user", "1"}});
  Asked two = Asked::For({{"user", "2"}});
  const std::string first = TextOf(one.On(*limiter));
  const std::string second = TextOf(two.On(*limiter));
  EXPECT_EQ(first.size(), 3 * kPermitDigits);
  ASSERT_EQ(one.check.verdicts.size(), 3U);
  const std::string all(one.check.verdicts[1].key);
  const std::string trial(one.check.verdicts[2].key);
  ASSERT_EQ(one.check.verdicts[2].policy, "trial");
  const Quota three = *Quota::Concurrency(3, 30s);
  const Quota four = *Quota::Concurrency(4, 10s);
  EXPECT_EQ(Left(world, all, three), 1);
  EXPECT_EQ(Left(world, trial, four), 2);
  // The clock stands still, so both users' own leases have the number that the first one's has in
  // the common bucket: user 2 must not release that one.
  EXPECT_TRUE(Release(*limiter, "2", second));
  EXPECT_FALSE(Release(*limiter, "2", second));
  EXPECT_EQ(Left(world, all, three), 2);
  EXPECT_EQ(Left(world, trial, four), 3);
  // User 1's permits can only be released by user 1: no one else can name user 1's bucket.
  EXPECT_TRUE(Release(*limiter, "1", first));
  EXPECT_EQ(Left(world, all, three), 3);
  EXPECT_EQ(Left(world, trial, four), 4);
}

TEST(Permits, ALeaseAloneFreesTheFirstPolicysOnly) {
  World world(kThree);
  auto limiter = world.NewLimiter();
  Asked one = Asked::For({{"user", "1"}});
  one.On(*limiter);
  const std::string own(one.check.verdicts[0].key);
  const std::string all(one.check.verdicts[1].key);
  Asked release = Asked::For({{"user", "1"}}, 1, Op::kRelease);
  release.check.lease = one.check.decision.lease;
  EXPECT_TRUE(release.On(*limiter).applied);
  EXPECT_EQ(Left(world, own, *Quota::Concurrency(2, 30s)), 2);
  EXPECT_EQ(Left(world, all, *Quota::Concurrency(3, 30s)), 2);
}

TEST(Permits, OnePolicyOnTrialIsReleasedByItsLease) {
  World world(
      "policies: [{name: t, key: k, shadow: true, quota: {concurrency: {limit: 1, lease: 9s}}}]");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::Key("k");
  EXPECT_EQ(asked.On(*limiter).decision.lease, test::kStart + 9'000'000'000);
  Asked release = Asked::Key("k", 1, Op::kRelease);
  release.check.lease = asked.check.decision.lease;
  EXPECT_TRUE(release.On(*limiter).applied);
  EXPECT_EQ(Left(world, "default/t", *Quota::Concurrency(1, 9s)), 1);
}

TEST(Permits, OfAPolicyThatIsGoneAreNobodys) {
  World world(kThree);
  auto limiter = world.NewLimiter();
  Asked one = Asked::For({{"user", "1"}});
  const std::string held = TextOf(one.On(*limiter));
  world.Publish("policies: [{name: x, match: {}, quota: {fixed_window: {limit: 1, window: 1s}}}]");
  EXPECT_FALSE(Release(*limiter, "1", held));
}

}  // namespace
}  // namespace weir::limiter
