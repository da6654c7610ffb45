// Bare keys that a request is checked for in addition to its descriptors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "policy/keys.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::string_view kPolicies = R"(
policies:
  - {name: any-ip, match: {ip: "*"}, quota: {fixed_window: {limit: 2, window: 1h}}}
  - {name: any-user, match: {user: "*"}, quota: {fixed_window: {limit: 3, window: 1h}}}
  - {name: pay, match: {ip: "*", route: /pay}, quota: {fixed_window: {limit: 4, window: 1h}}}
  - {name: exact, match: {ip: 10.0.0.3}, quota: {fixed_window: {limit: 5, window: 1h}}}
  - {name: net, match: {ip: 10.1.*}, quota: {fixed_window: {limit: 6, window: 1h}}}
  - {name: office, key: 10.0.0.1, quota: {fixed_window: {limit: 50, window: 1h}}}
  - {name: trial, key: 10.0.0.2, shadow: true, quota: {fixed_window: {limit: 1, window: 1h}}}
  - {name: three, key: 10.0.0.3, quota: {fixed_window: {limit: 50, window: 1h}}}
  - {name: friend, key: 10.0.0.4, unlimited: true}
  - {name: branch, key: 10.1.0.1, quota: {fixed_window: {limit: 50, window: 1h}}}
)";

/// A request of these entries, each of which is a subject.
class Subjects : public testing::Test {
 protected:
  std::vector<std::string> Policies(std::vector<policy::Entry> entries) {
    Asked asked = Asked::For(entries);
    asked.check.request.subjects = entries;
    asked.check.request.default_applies = default_applies_;
    const Check& check = asked.On(*limiter_);
    EXPECT_TRUE(check.status.ok());
    std::vector<std::string> names;
    keys_.clear();
    for (const PolicyVerdict& verdict : check.verdicts) {
      names.emplace_back(verdict.policy);
      keys_.emplace_back(verdict.key);
    }
    decision_ = check.decision;
    policy_ = check.policy;
    return names;
  }

  World world_{kPolicies};
  std::unique_ptr<PolicyLimiter> limiter_ = world_.NewLimiter();
  bool default_applies_ = false;
  std::vector<std::string> keys_;
  Decision decision_;
  std::string policy_;
};

TEST_F(Subjects, APolicyForOneValueStandsInForThoseForAnyValue) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.1"}}), ElementsAre("office"));
  EXPECT_THAT(keys_, ElementsAre("key|10.0.0.1"));
  EXPECT_EQ(decision_.remaining, 49);
}

TEST_F(Subjects, WithoutAPolicyOfItsOwnAValueHasTheGeneralOne) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.9"}}), ElementsAre("any-ip"));
}

TEST_F(Subjects, AKeyThatIsSpelledLikeAnAddressIsNotThatAddress) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.9"}, {"api_key", "10.0.0.4"}}), ElementsAre("any-ip"));
  EXPECT_THAT(Policies({{"ip", "10.0.0.9"}, {"user", "10.0.0.1"}}),
              UnorderedElementsAre("any-ip", "any-user"));
  default_applies_ = true;
  EXPECT_THAT(Policies({{"api_key", "10.0.0.4"}}), ElementsAre("default"));
}

TEST_F(Subjects, APolicyForBeginningsIsGeneralToo) {
  EXPECT_THAT(Policies({{"ip", "10.1.0.1"}}), ElementsAre("branch"));
}

TEST_F(Subjects, PoliciesForOtherEntriesOrMoreThanOneStay) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.1"}, {"user", "42"}, {"route", "/pay"}}),
              UnorderedElementsAre("any-user", "pay", "office"));
}

TEST_F(Subjects, APolicyThatNamesTheSameValueStays) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.3"}}), UnorderedElementsAre("exact", "three"));
}

TEST_F(Subjects, APolicyOnTrialStandsInForNone) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.2"}}), UnorderedElementsAre("any-ip", "trial"));
}

TEST_F(Subjects, AFriendHasNoLimit) {
  EXPECT_THAT(Policies({{"ip", "10.0.0.4"}}), ElementsAre("friend"));
  EXPECT_THAT(keys_, ElementsAre(""));
  EXPECT_EQ(decision_.limit, 0);
  EXPECT_EQ(policy_, "friend");
}

TEST_F(Subjects, AChainStays) {
  world_.Publish(R"(
policies:
  - {name: chain, chain: [{ip: "*"}], quota: {fixed_window: {limit: 7, window: 1h}}}
  - {name: office, key: 10.0.0.1, quota: {fixed_window: {limit: 50, window: 1h}}}
)");
  EXPECT_THAT(Policies({{"ip", "10.0.0.1"}}), UnorderedElementsAre("chain", "office"));
}

TEST_F(Subjects, ARequestsOwnQuotaStays) {
  const Quota own = *Quota::FixedWindow(9, std::chrono::hours(1));
  const Quota* const overrides[] = {&own};
  const std::vector<policy::Entry> entries = {{"ip", "10.0.0.1"}};
  Asked asked = Asked::For(entries);
  asked.check.request.subjects = entries;
  asked.check.request.overrides = overrides;
  const Check& check = asked.On(*limiter_);
  ASSERT_EQ(check.verdicts.size(), 2U);
  EXPECT_EQ(check.verdicts[0].policy, "override");
  EXPECT_EQ(check.verdicts[1].policy, "office");
}

TEST_F(Subjects, WhereNoPolicyAppliesTheDefaultDoesIfAskedFor) {
  EXPECT_THAT(Policies({{"host", "a"}, {"port", "1"}}), IsEmpty());
  default_applies_ = true;
  EXPECT_THAT(Policies({{"host", "a"}, {"port", "1"}}), ElementsAre("default"));
  EXPECT_THAT(keys_, ElementsAre("key|a"));
  EXPECT_EQ(decision_.limit, 100);
  EXPECT_THAT(Policies({{"ip", "10.0.0.9"}}), ElementsAre("any-ip"));
}

TEST_F(Subjects, PoliciesOnTrialDoNotKeepTheDefaultAway) {
  default_applies_ = true;
  EXPECT_THAT(Policies({{"host", "10.0.0.2"}}), ElementsAre("trial", "default"));
}

// A bucket of 5 that takes 5 minutes to fill, next to the default's of 100, which takes 10 s.
constexpr std::string_view kSlowTrial =
    "policies: [{name: trial, key: 10.0.0.2, shadow: true, "
    "quota: {token_bucket: {capacity: 5, refill: 1, period: 1m}}}]";

TEST_F(Subjects, APolicyOnTrialChargesNothingToTheDefault) {
  world_.Publish(kSlowTrial);
  default_applies_ = true;
  for (int i = 1; i <= 100; ++i) {
    EXPECT_THAT(Policies({{"host", "10.0.0.2"}}), ElementsAre("trial", "default"));
    ASSERT_TRUE(decision_.allowed()) << i;
    EXPECT_EQ(decision_.remaining, 100 - i);
  }
  Policies({{"host", "10.0.0.2"}});
  EXPECT_FALSE(decision_.allowed());
  EXPECT_EQ(world_.CountsOf("trial").shadow_limited, 96U);  // all but 5
}

TEST_F(Subjects, APolicyOnTrialDoesNotLiftTheDefaultOfABareKey) {
  world_.Publish(kSlowTrial);
  for (int i = 1; i <= 101; ++i) {
    Asked asked = Asked::Key("10.0.0.2");
    const Check& check = asked.On(*limiter_);
    ASSERT_EQ(check.verdicts.size(), 2U);
    EXPECT_EQ(check.verdicts[0].policy, "trial");
    EXPECT_EQ(check.policy, "default");
    EXPECT_EQ(check.verdicts[1].key, "key|10.0.0.2");
    EXPECT_EQ(check.decision.allowed(), i <= 100) << i;
  }
  EXPECT_EQ(world_.CountsOf("trial").shadow_limited, 96U);
}

// Charges made while a policy is in shadow mode count once it is enforced.
TEST_F(Subjects, APolicyThatIsEnforcedAfterItsTrialHasTheKeysBucket) {
  world_.Publish(kSlowTrial);
  Asked::Key("10.0.0.2").On(*limiter_);
  world_.Publish(
      "policies: [{name: trial, key: 10.0.0.2, quota: {token_bucket: {capacity: 5, "
      "refill_per_second: 1}}}]");
  Asked asked = Asked::Key("10.0.0.2");
  EXPECT_EQ(asked.On(*limiter_).verdicts.at(0).key, "key|10.0.0.2");
}

TEST_F(Subjects, AValueThatIsTooLongForANameIsLimited) {
  const std::string huge(5000, 'x');
  const std::vector<policy::Entry> subjects = {{"host", huge}};
  Asked asked = Asked::For({});
  asked.check.request.subjects = subjects;
  asked.check.request.default_applies = true;
  const Check& check = asked.On(*limiter_);
  ASSERT_TRUE(check.status.ok()) << check.status.error().message;
  EXPECT_EQ(check.policy, "default");
  EXPECT_LE(check.verdicts.at(0).key.size(), policy::kMaxKeyBytes);
}

// Keys are the same in every domain, names are not.
TEST_F(Subjects, APolicyReplacesOnlyThoseOfItsOwnDomain) {
  constexpr std::string_view kPay =
      "policies: [{name: pay, match: {ip: '*', route: /pay}, replaces: [office], "
      "quota: {fixed_window: {limit: 9, window: 1h}}}]";
  constexpr std::string_view kOffice =
      "policies: [{name: office, key: 10.0.0.1, quota: {fixed_window: {limit: 1, window: 1h}}}]";
  const std::vector<policy::Entry> entries = {{"ip", "10.0.0.1"}, {"route", "/pay"}};
  world_.Publish(kPay, kOffice);
  EXPECT_THAT(Policies(entries), ElementsAre("pay"));
  world_.Publish(kPay, "domain: intern\n" + std::string(kOffice));
  EXPECT_THAT(Policies(entries), UnorderedElementsAre("pay", "office"));
}

// 256 policies for all requests, and one for a key.
TEST_F(Subjects, MorePoliciesThanAnAnswerNamesAreAnError) {
  std::string text = "policies:\n";
  for (int i = 0; i < 256; ++i) {
    text += "  - {name: p" + std::to_string(i) +
            ", match: {}, quota: {fixed_window: {limit: 1000, window: 1h}}}\n";
  }
  text += "  - {name: office, key: 10.0.0.1, quota: {fixed_window: {limit: 50, window: 1h}}}\n";
  world_.Publish(text);
  EXPECT_EQ(Policies({{"ip", "10.0.0.9"}}).size(), 256U);
  const std::vector<policy::Entry> entries = {{"ip", "10.0.0.1"}};
  Asked asked = Asked::For(entries);
  asked.check.request.subjects = entries;
  const Check& check = asked.On(*limiter_);
  ASSERT_FALSE(check.status.ok());
  EXPECT_EQ(check.status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(check.status.error().message, HasSubstr("more than 256 policies"));
  EXPECT_THAT(check.verdicts, IsEmpty());
}

// What was not looked for may be a policy that refuses.
TEST_F(Subjects, TooManyEntriesOfTheSameNamesAreAnError) {
  world_.Publish(R"(
policies:
  - {name: p, match: {a: "0", b: "19", c: "19"}, quota: {fixed_window: {limit: 9, window: 1s}}}
)");
  std::vector<std::string> values;
  for (int i = 0; i < 20; ++i) values.push_back(std::to_string(i));
  std::vector<policy::Entry> entries;
  for (const char* name : {"a", "b", "c"}) {
    for (const std::string& value : values) entries.push_back({name, value});
  }
  Asked asked = Asked::For(entries);
  const Check& check = asked.On(*limiter_);
  ASSERT_FALSE(check.status.ok());
  EXPECT_EQ(check.status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(check.status.error().message, HasSubstr("too many entries of the same names"));
}

}  // namespace
}  // namespace weir::limiter
