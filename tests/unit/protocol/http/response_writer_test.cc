#include "protocol/http/response_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/http/error.h"

namespace weir::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

limiter::Check MakeCheck() {
  limiter::Check check;
  check.decision = {.verdict = Verdict::kAllowed,
                    .limit = 100,
                    .remaining = 99,
                    .retry_after = nanoseconds(0),
                    .reset_after = milliseconds(100),
                    .lease = 0};
  check.policy = "per-user";
  return check;
}

TEST(Decision, IsWrittenAsTheApiSays) {
  limiter::Check check = MakeCheck();
  std::string out;
  JsonWriter json(out);
  AppendDecision(json, check);
  EXPECT_EQ(out,
            R"({"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,"resetAfterMs":100,)"
            R"("policy":"per-user"})");
}

TEST(Decision, TellsThatNoPolicyApplied) {
  limiter::Check check;
  check.matched = false;
  std::string out;
  JsonWriter json(out);
  AppendDecision(json, check);
  EXPECT_EQ(out, R"({"allowed":true,"limit":0,"remaining":0,"retryAfterMs":0,"resetAfterMs":0,)"
                 R"("policy":"","matched":false})");
}

TEST(Decision, RoundsTimesUpAndTellsDegradation) {
  limiter::Check check = MakeCheck();
  check.decision.verdict = Verdict::kLimited;
  check.decision.remaining = 0;
  check.decision.retry_after = nanoseconds(1);
  check.decision.reset_after = nanoseconds(1'000'001);
  check.degraded = true;
  check.policy = "a\"b";
  std::string out;
  JsonWriter json(out);
  AppendDecision(json, check);
  EXPECT_EQ(out, R"({"allowed":false,"limit":100,"remaining":0,"retryAfterMs":1,"resetAfterMs":2,)"
                 R"("policy":"a\"b","degraded":true})");
}

TEST(Decision, TellsLeasesAndWhetherTheyCameBack) {
  limiter::Check check = MakeCheck();
  check.decision.lease = 7;
  check.verdicts.push_back({.policy = "p", .key = "a", .decision = check.decision});
  std::string out;
  JsonWriter json(out);
  AppendDecision(json, check);
  // FNV-1a of "a" is af63dc4c8601ec8c, folded 296230c0.
  EXPECT_EQ(out,
            R"({"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,"resetAfterMs":100,)"
            R"("policy":"per-user","lease":7,"leases":"296230c00000000000000007"})");
  check.op = store::Op::kRelease;
  check.decision.lease = 0;
  check.applied = true;
  out.clear();
  AppendDecision(json, check);
  EXPECT_EQ(out,
            R"({"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,"resetAfterMs":100,)"
            R"("policy":"per-user","released":true})");
}

TEST(Decision, TellsWhyItCouldNotBeMade) {
  limiter::Check check;
  check.status = Error{Code::kUnavailable, "the store is down"};
  std::string out;
  JsonWriter json(out);
  AppendDecision(json, check);
  EXPECT_EQ(out, R"({"error":"unavailable","message":"the store is down"})");
}

TEST(Response, IsWrittenWithItsHead) {
  DateCache date;
  Response response;
  response.body = "{}";
  response.headers.emplace_back("Allow", "GET");
  std::string out;
  // RFC 9110's own example of a date is 784111777 seconds after the epoch.
  AppendResponse(out, response, {.date = date.At(784111777), .request_id = "r", .close = true});
  EXPECT_EQ(out,
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\nX-Request-Id: r\r\n"
            "Connection: close\r\nAllow: GET\r\nCache-Control: no-store\r\n\r\n{}");
}

TEST(Response, OfHeadHasNoBodyButItsLength) {
  Response response;
  response.status = 404;
  response.body = "{}";
  std::string out;
  AppendResponse(out, response, {.head = true});
  EXPECT_EQ(out,
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
            "Cache-Control: no-store\r\n\r\n");
}

TEST(Field, NoByteOfItEndsItsLine) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string out;
    const std::string text = "a" + std::string(1, static_cast<char>(byte)) + "b";
    AppendField(out, text, text);
    ASSERT_GE(out.size(), 2U);
    const std::string line = out.substr(0, out.size() - 2);
    EXPECT_EQ(out.substr(out.size() - 2), "\r\n");
    EXPECT_EQ(line.find(':'), line.find(": a")) << byte;
    for (const char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << byte;
  }
}

TEST(Response, NoHeaderOfAHandlerIsWrittenRaw) {
  Response response;
  response.headers.emplace_back("X-Next", "a\r\nSet-Cookie: b\r\n\r\n");
  response.headers.emplace_back("X\r\nY", "1");
  std::string out;
  AppendResponse(out, response, {.request_id = "i\nj", .traceparent = "k\rl"});
  EXPECT_EQ(out,
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Request-Id: i%0Aj\r\n"
            "traceparent: k%0Dl\r\nX-Next: a%0D%0ASet-Cookie: b%0D%0A%0D%0A\r\n"
            "X%0D%0AY: 1\r\nCache-Control: no-store\r\n\r\n");
}

TEST(LimitHeaders, TellEachEnforcedPolicy) {
  const Quota minute = *Quota::FixedWindow(100, std::chrono::seconds(60));
  limiter::Check check = MakeCheck();
  check.decision.remaining = 50;
  check.decision.reset_after = milliseconds(29'001);
  limiter::PolicyVerdict verdict;
  verdict.policy = "burst";
  verdict.quota = &minute;
  verdict.decision = check.decision;
  check.verdicts.push_back(verdict);
  verdict.policy = "hidden";
  verdict.shadow = true;
  check.verdicts.push_back(verdict);
  std::string out;
  AppendLimitHeaders(out, check, {});
  EXPECT_EQ(out,
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 50\r\nX-RateLimit-Reset: 30\r\n"
            "RateLimit-Policy: \"burst\";q=100;w=60\r\nRateLimit: \"burst\";r=50;t=30\r\n");
  out.clear();
  AppendLimitHeaders(out, check, {.x_ratelimit = false, .ietf = false});
  EXPECT_EQ(out, "");
}

TEST(Decision, TellsOfReservationsEstimatesAndWhatNeverFits) {
  limiter::Check check = MakeCheck();
  check.reserve = milliseconds(5000);
  check.reservation = "abc";
  check.estimated = true;
  std::string out;
  JsonWriter json(out);
  AppendDecision(json, check);
  EXPECT_EQ(out,
            R"({"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,"resetAfterMs":100,)"
            R"("policy":"per-user","reservation":"abc","expiresAfterMs":5000,"estimated":true})");
  check = MakeCheck();
  check.op = store::Op::kSettle;
  check.decision.verdict = Verdict::kNever;
  check.decision.remaining = -3;
  out.clear();
  AppendDecision(json, check);
  EXPECT_EQ(out,
            R"({"allowed":false,"limit":100,"remaining":0,"retryAfterMs":0,"resetAfterMs":100,)"
            R"("policy":"per-user","never":true,"settled":false})");
}

TEST(Response, ABodyOfNoTypeHasNone) {
  std::string out;
  AppendHead(out, 200, "", 5, {});
  EXPECT_EQ(out.find("Content-Type"), std::string::npos);
  EXPECT_NE(out.find("Content-Length: 5\r\n"), std::string::npos);
}

TEST(DateCache, TellsEachSecondAsItIs) {
  DateCache dates;
  EXPECT_EQ(dates.At(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110, 5.6.7
  EXPECT_EQ(dates.At(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(dates.At(784'111'778), "Sun, 06 Nov 1994 08:49:38 GMT");
}

TEST(Response, OfNothingHasNoLength) {
  for (const int status : {204, 304}) {
    Response response;
    response.status = status;
    std::string out;
    AppendResponse(out, response, {});
    EXPECT_EQ(out.find("Content-Length"), std::string::npos) << status;
  }
  Response limited;
  limited.status = 429;
  std::string out;
  AppendResponse(out, limited, {});
  EXPECT_TRUE(out.starts_with("HTTP/1.1 429 Too Many Requests\r\n")) << out;
}

TEST(LimitHeaders, SayWhoDecidedWhileTheStoreIsAway) {
  limiter::Check check = MakeCheck();
  check.degraded_by = "local";
  limiter::PolicyVerdict unlimited;
  unlimited.policy = "free";
  check.verdicts.push_back(unlimited);
  std::string out;
  AppendLimitHeaders(out, check, {});
  EXPECT_EQ(out, "X-RateLimit-Degraded: local\r\n") << "what has no limit has nothing to tell";
}

TEST(Status, EveryCodeHasOne) {
  EXPECT_EQ(StatusFor(Code::kInvalidArgument), 400);
  EXPECT_EQ(StatusFor(Code::kUnauthenticated), 401);
  EXPECT_EQ(StatusFor(Code::kPermissionDenied), 403);
  EXPECT_EQ(StatusFor(Code::kNotFound), 404);
  EXPECT_EQ(StatusFor(Code::kAlreadyExists), 409);
  EXPECT_EQ(StatusFor(Code::kFailedPrecondition), 409);
  EXPECT_EQ(StatusFor(Code::kResourceExhausted), 429);
  EXPECT_EQ(StatusFor(Code::kInternal), 500);
  EXPECT_EQ(StatusFor(Code::kUnimplemented), 501);
  EXPECT_EQ(StatusFor(Code::kUnavailable), 503);
  EXPECT_EQ(StatusFor(Code::kDeadlineExceeded), 504);
  EXPECT_EQ(ErrorResponse(Error{Code::kNotFound, "gone"}).status, 404);
}

}  // namespace
}  // namespace weir::http
