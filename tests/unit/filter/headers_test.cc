#include "filter/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace weir::filter {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Fields = std::vector<std::pair<std::string, std::string>>;

// 2026-02-22T06:55:00Z: 20,506 days after the epoch (56 years with 14 leap days, then 52 days), and
// 6 h 55 min = 24,900 s.
constexpr Nanos kNow = (20'506LL * 86'400 + 24'900) * 1'000'000'000;

Fields Headers(std::span<const Applied> applied, const Decision& strictest,
               HeaderChoice choice = {}) {
  Fields fields;
  GiveLimitHeaders(applied, strictest, choice, [&](std::string_view name, std::string_view value) {
    fields.emplace_back(name, value);
  });
  return fields;
}

Decision Allowed(std::int64_t limit, std::int64_t remaining, std::chrono::nanoseconds reset) {
  Decision decision;
  decision.limit = limit;
  decision.remaining = remaining;
  decision.reset_after = reset;
  return decision;
}

Decision Limited(std::int64_t limit, std::chrono::nanoseconds retry,
                 std::chrono::nanoseconds reset) {
  Decision decision = Allowed(limit, 0, reset);
  decision.verdict = Verdict::kLimited;
  decision.retry_after = retry;
  return decision;
}

Decision Never(std::int64_t limit) {
  Decision decision = Allowed(limit, limit, seconds(0));
  decision.verdict = Verdict::kNever;
  return decision;
}

TEST(LimitHeaders, TellAnAllowedClientItsState) {
  // 100 permits, 100 per minute: empty to full takes 60 s; half full needs 30 s more.
  const Quota quota = *Quota::TokenBucket(100, 100, minutes(1));
  const Applied applied{"burst", &quota, Allowed(100, 50, seconds(30))};
  EXPECT_THAT(
      Headers({&applied, 1}, applied.decision),
      ElementsAre(Pair("X-RateLimit-Limit", "100"), Pair("X-RateLimit-Remaining", "50"),
                  Pair("X-RateLimit-Reset", "30"), Pair("RateLimit-Policy", "\"burst\";q=100;w=60"),
                  Pair("RateLimit", "\"burst\";r=50;t=30")));
}

TEST(LimitHeaders, RoundTimesUp) {
  const Quota quota = *Quota::FixedWindow(5, milliseconds(1500));
  const Applied applied{"p", &quota, Limited(5, milliseconds(1001), milliseconds(1))};
  EXPECT_THAT(
      Headers({&applied, 1}, applied.decision),
      ElementsAre(Pair("Retry-After", "2"), Pair("X-RateLimit-Limit", "5"),
                  Pair("X-RateLimit-Remaining", "0"), Pair("X-RateLimit-Reset", "1"),
                  Pair("RateLimit-Policy", "\"p\";q=5;w=2"), Pair("RateLimit", "\"p\";r=0;t=1")));
}

TEST(LimitHeaders, ListAllPoliciesAndTheStrictestAlone) {
  const Quota minute = *Quota::FixedWindow(10, minutes(1));
  const Quota hour = *Quota::SlidingLog(100, minutes(60));
  const std::vector<Applied> applied = {{"minute", &minute, Allowed(10, 3, seconds(20))},
                                        {"hour", &hour, Allowed(100, 1, seconds(900))}};
  EXPECT_THAT(Headers(applied, applied[1].decision),
              ElementsAre(Pair("X-RateLimit-Limit", "100"), Pair("X-RateLimit-Remaining", "1"),
                          Pair("X-RateLimit-Reset", "900"),
                          Pair("RateLimit-Policy", "\"minute\";q=10;w=60, \"hour\";q=100;w=3600"),
                          Pair("RateLimit", "\"minute\";r=3;t=20, \"hour\";r=1;t=900")));
}

TEST(LimitHeaders, NameTheUnitOfAConcurrencyQuota) {
  const Quota quota = *Quota::Concurrency(4, seconds(30));
  const Applied applied{"inflight", &quota, Allowed(4, 3, seconds(30))};
  EXPECT_THAT(Headers({&applied, 1}, applied.decision, {.x_ratelimit = false}),
              ElementsAre(Pair("RateLimit-Policy", "\"inflight\";q=4;qu=\"concurrent-requests\""),
                          Pair("RateLimit", "\"inflight\";r=3;t=30")));
}

TEST(LimitHeaders, CanBeSwitchedOffExceptRetryAfter) {
  const Quota quota = *Quota::FixedWindow(5, seconds(60));
  const Applied applied{"p", &quota, Limited(5, seconds(7), seconds(7))};
  EXPECT_THAT(Headers({&applied, 1}, applied.decision, {.x_ratelimit = false, .ietf = false}),
              ElementsAre(Pair("Retry-After", "7")));
}

TEST(LimitHeaders, AreAbsentWhenNothingApplied) { EXPECT_THAT(Headers({}, {}), IsEmpty()); }

TEST(LimitHeaders, QuotePolicyNamesSafely) {
  const Quota quota = *Quota::FixedWindow(1, seconds(1));
  const Applied applied{"a\"b\\c\r\nd", &quota, Allowed(1, 0, seconds(1))};
  EXPECT_THAT(Headers({&applied, 1}, applied.decision, {.x_ratelimit = false}),
              ElementsAre(Pair("RateLimit-Policy", "\"a\\\"b\\\\c__d\";q=1;w=1"),
                          Pair("RateLimit", "\"a\\\"b\\\\c__d\";r=0;t=1")));
}

TEST(LimitHeaders, OfAPolicyThatAppliesTwiceTellTheStrictest) {
  const Quota quota = *Quota::FixedWindow(9, seconds(10));
  const std::vector<Applied> applied = {{"p", &quota, Allowed(9, 5, seconds(10))},
                                        {"p", &quota, Allowed(9, 2, seconds(10))},
                                        {"p", &quota, Allowed(9, 2, seconds(10))},
                                        {"other", &quota, Allowed(9, 7, seconds(10))}};
  EXPECT_THAT(Headers(applied, applied[1].decision, {.x_ratelimit = false}),
              ElementsAre(Pair("RateLimit-Policy", "\"p\";q=9;w=10, \"other\";q=9;w=10"),
                          Pair("RateLimit", "\"p\";r=2;t=10, \"other\";r=7;t=10")));
}

TEST(LimitHeaders, NeverHasNoRetryAfter) {
  const Quota quota = *Quota::FixedWindow(1, seconds(1));
  const Applied applied{"p", &quota, Never(1)};
  EXPECT_EQ(Headers({&applied, 1}, applied.decision).front().first, "X-RateLimit-Limit");
}

TEST(Denial, IsPlainTextByDefault) {
  const Denial denial = MakeDenial(Limited(1, milliseconds(6001), seconds(9)), "", kNow);
  EXPECT_EQ(denial.body, "Try again in 7 seconds");
  EXPECT_EQ(denial.content_type, "text/plain; charset=utf-8");
}

TEST(Denial, IsTheErrorSchemaForClientsThatAskForJson) {
  const Denial denial = MakeDenial(Limited(1, seconds(7), seconds(9)), "application/json", kNow);
  EXPECT_EQ(denial.content_type, "application/json");
  EXPECT_EQ(denial.body,
            R"({"status":429,"error":"Too Many Requests","message":"Try again in 7 seconds",)"
            R"("timestamp":"2026-02-22T06:55:00Z"})");
}

TEST(Denial, NamesTheKeyInTheErrorSchema) {
  const Decision limited = Limited(1, seconds(7), seconds(9));
  EXPECT_THAT(MakeDenial(limited, "application/json", kNow, "user-123").body,
              HasSubstr(R"("message":"Rate limit exceeded for key: user-123")"));
  EXPECT_EQ(MakeDenial(limited, "", kNow, "user-123").body, "Try again in 7 seconds");
  EXPECT_THAT(MakeDenial(Never(1), "application/json", kNow, "user-123").body,
              Not(HasSubstr("user-123")));
}

TEST(Denial, NeverTellsAClientToComeBackInZeroSeconds) {
  EXPECT_EQ(MakeDenial(Limited(1, std::chrono::nanoseconds(0), seconds(1)), "", kNow).body,
            "Try again in 1 seconds");
}

TEST(Denial, DoesNotPromiseWhatWaitingCannotMend) {
  EXPECT_EQ(MakeDenial(Never(1), "", kNow).body,
            "The cost of this request is above its limit, so it can never be allowed");
}

TEST(ErrorJson, EscapesTheMessage) {
  EXPECT_EQ(ErrorJson(502, "a\"b\\\n", 0),
            R"({"status":502,"error":"Bad Gateway","message":"a\"b\\\n",)"
            R"("timestamp":"1970-01-01T00:00:00Z"})");
}

TEST(WantsJson, ReadsTheAcceptHeader) {
  EXPECT_TRUE(WantsJson("application/json"));
  EXPECT_TRUE(WantsJson("text/html, Application/JSON;q=0.9, */*;q=0.1"));
  EXPECT_TRUE(WantsJson("application/problem+json"));
  EXPECT_TRUE(WantsJson("text/plain;q=0.5, application/json;q=0.5"));
  EXPECT_FALSE(WantsJson("text/plain, application/json;q=0.5"));
  EXPECT_FALSE(WantsJson("application/json;q=0"));
  EXPECT_FALSE(WantsJson("application/json; q=0.000"));
  EXPECT_TRUE(WantsJson("text/plain;q=0.9 ,\tapplication/json ; charset=utf-8 ; q=1"));
  EXPECT_TRUE(WantsJson("text/plain;q=0.2, application/json; v; qs=0.1;Q=0.3\t"));
  EXPECT_FALSE(WantsJson("text/plain;q=0.2, application/json;v=1;q=0.1"));
  EXPECT_TRUE(WantsJson("text/plain;q=0.5, , application/json"));
  // A non-digit counts as 0: 0.050 and 0.005 are less than 0.1.
  EXPECT_FALSE(WantsJson("text/plain;q=0.1, application/json;q=0.x5"));
  EXPECT_FALSE(WantsJson("text/plain;q=0.1, application/json;q=0.--5"));
  EXPECT_FALSE(WantsJson("*/*"));
  EXPECT_FALSE(WantsJson("text/html"));
  EXPECT_FALSE(WantsJson(""));
}

}  // namespace
}  // namespace weir::filter
