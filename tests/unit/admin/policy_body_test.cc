#include "admin/policy_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

PolicyBody Read(const std::string& fields) {
  const auto read = ReadPolicyBody(R"({"key":"k",)" + fields + "}");
  EXPECT_TRUE(read.ok()) << fields << ": " << read.error().message;
  return read.ok() ? *read : PolicyBody();
}
std::string Why(const std::string& fields) {
  const auto read = ReadPolicyBody(R"({"key":"k",)" + fields + "}");
  return read.ok() ? "no error" : read.error().message;
}

// Otherwise 10 in 60 seconds would become 10 a second.
TEST(PolicyBody, ABucketWithAWindowAndNoRateIsRefused) {
  EXPECT_EQ(
      Why(R"("type":"TOKEN_BUCKET","capacity":10,"windowSeconds":60)"),
      "refillRate: is missing; a TOKEN_BUCKET has no windowSeconds. Give the permits that come "
      "back each second, or use SLIDING_WINDOW for 10 in any 60 s");
  EXPECT_THAT(Why(R"("type":"token_bucket","limit":10,"window":"1m")"),
              HasSubstr("has no window."));
  const std::string both =
      R"("type":"TOKEN_BUCKET","capacity":9,"refillRate":5,"windowSeconds":60)";
  EXPECT_THAT(Read(both).warnings,
              ElementsAre("windowSeconds is not used by TOKEN_BUCKET; 5 permits come back each "
                          "second"));
  // As in the service's answers, and from clients that fill in all numbers.
  EXPECT_THAT(Read(both + R"(,"version":1)").warnings, IsEmpty());
  EXPECT_THAT(
      Read(R"("type":"TOKEN_BUCKET","capacity":9,"refillRate":5,"windowSeconds":0)").warnings,
      IsEmpty());
}

TEST(PolicyBody, WhatWasGivenIsNamedAndWhatWasMeant) {
  const std::string types =
      "type: must be TOKEN_BUCKET, FIXED_WINDOW, SLIDING_WINDOW, SLIDING_COUNTER, CONCURRENCY, "
      "ANCHORED_WINDOW or OVERRIDE, not ";
  EXPECT_EQ(Why(R"("type":"TOKEN_BUCKT")"), types + "\"TOKEN_BUCKT\"; did you mean TOKEN_BUCKET?");
  EXPECT_EQ(Why(R"("type":"fixed-window")"),
            types + "\"fixed-window\"; did you mean FIXED_WINDOW?");
  EXPECT_EQ(Why(R"("type":"leaky")"), types + "\"leaky\"");
  EXPECT_EQ(Why(R"("onStoreError":"dney")"),
            "onStoreError: must be allow, deny or local, not \"dney\"; did you mean deny?");
  EXPECT_EQ(Why(R"("capacity":"ten")"), "capacity: must be an integer, not \"ten\"");
  EXPECT_EQ(Why(R"("shadow":"yes")"), "shadow: must be true or false, not \"yes\"");
  EXPECT_THAT(Why(R"("capcity":5)"), HasSubstr("capcity: is not a field of a policy; did you mean "
                                               "capacity? The fields are key, type, "));
  EXPECT_EQ(Why(R"("capacity":5,)"),
            "the body is not well-formed JSON: line 1, column 25: nothing follows the comma before "
            "it");
  const auto cut = ReadPolicyBody(R"({"key":"k")");
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().message,
            "the body is not well-formed JSON: line 1, column 11: the text ends here; expected ',' "
            "or '}'");
}

// Such a value has no type, so it is not a value of the wrong one.
TEST(PolicyBody, AValueThatIsNotWellFormedIsShownWithItsPlace) {
  for (const char* fields :
       {R"("domain":"a\qb")", R"("type":"a\qb")", R"("match":{"user":"a\qb"})",
        R"("window":"a\qb")", R"("expiresAt":"a\qb")", R"("updatedAt":"a\qb")", R"("capacity":1x)",
        R"("refillRate":01)", R"("expiresAt":nul)", R"("match":{"user":"a")",
        R"("quota":{"fixed_window":{"limit":1x}})"}) {
    EXPECT_THAT(Why(fields), StartsWith("the body is not well-formed JSON: line 1, column "))
        << fields;
  }
}

TEST(PolicyBody, WhatIsMissingIsNamedWithWhatItIs) {
  EXPECT_THAT(Read(R"("type":"TOKEN_BUCKET","capacity":10)").warnings,
              ElementsAre("refillRate is missing; 10 permits come back each second"));
  EXPECT_THAT(Read(R"("type":"FIXED_WINDOW","capacity":10)").warnings,
              ElementsAre("windowSeconds is missing; it is 60"));
  EXPECT_THAT(Read(R"("type":"FIXED_WINDOW","windowSeconds":5)").warnings,
              ElementsAre("capacity is missing; the limit is 100"));
  EXPECT_THAT(Read(R"("unlimited":true)").warnings, IsEmpty());
}

// As reported by `weir config check` for files.
TEST(PolicyBody, APolicyThatNoRequestMeetsIsWarnedOf) {
  const std::string quota = R"("type":"FIXED_WINDOW","capacity":3,"windowSeconds":60,)";
  EXPECT_THAT(Read(quota + R"("match":{"ip":"10.0.0.0/8"})").warnings,
              ElementsAre("the policy applies to no request: ip '10.0.0.0/8' is a network: it "
                          "matches only a client identified by exactly this string"));
  EXPECT_THAT(Read(quota + R"("match":{"method":"get","route":"v1/pay","user":"*"})").warnings,
              ElementsAre("the policy applies to no request: method 'get': methods are upper case; "
                          "route 'v1/pay': paths begin with '/'"));
  // Also for the service's own answers, since the warning is still true.
  EXPECT_THAT(Read(quota + R"("id":1,"version":2,"match":{"method":"get"})").warnings, SizeIs(1));
  EXPECT_THAT(Read(quota + R"("match":{"ip":"*","method":"GET","route":"/v1/*"})").warnings,
              IsEmpty());
}

TEST(PolicyBody, ADomainWithoutAMatchIsWarnedOf) {
  const std::string quota = R"("type":"FIXED_WINDOW","capacity":3,"windowSeconds":60,"domain":"x")";
  EXPECT_THAT(Read(quota).warnings,
              ElementsAre("domain is not used without match: the policy is for a bare key"));
  EXPECT_THAT(Read(quota + R"(,"match":{})").warnings, IsEmpty());
  EXPECT_THAT(Read(R"("type":"OVERRIDE","domain":"x","shadow":true)").warnings, IsEmpty());
}

TEST(PolicyBody, AQuotaNeedsAllOfItsNumbersAsInFiles) {
  EXPECT_EQ(Why(R"("quota":{"token_bucket":{"capacity":10}})"),
            "token_bucket: requires refill_per_second");
  EXPECT_EQ(Why(R"("quota":{"token_bucket":{"refill_per_second":10}})"),
            "token_bucket: requires capacity");
  EXPECT_EQ(Why(R"("quota":{"sliding_log":{"limit":5}})"), "sliding_log: requires window");
  EXPECT_EQ(Why(R"("quota":{"sliding_log":{"window":"1m"}})"), "sliding_log: requires limit");
  EXPECT_THAT(Read(R"("quota":{"sliding_log":{"limit":5,"window":"1m"}})").warnings, IsEmpty());
}

}  // namespace
}  // namespace weir::http
