#include "notify/api/notify_json.h"

#include <gmock/gmock.h>

#include "notify/api/ledger_json.h"

namespace weir::notify {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

std::string LimitProblem(std::string_view body) {
  const Result<notify::UserLimit> limit = ParseLimit(body);
  return limit.ok() ? "none" : limit.error().message;
}

std::string SendProblem(std::string_view body) {
  const Result<notify::SendRequest> send = ParseSend(body, "");
  return send.ok() ? "none" : send.error().message;
}

TEST(NotifyJson, ReadsALimitUnderEitherNames) {
  const notify::UserLimit wanted{"42", 5, 10, 0, 0};
  EXPECT_EQ(*ParseLimit(R"({"userId":"42","rateLimit":5,"timeWindow":10})"), wanted);
  EXPECT_EQ(*ParseLimit(R"({"user_id":42,"rate_limit":5,"time_window":10})"), wanted);
  // A number is minutes, as always; a string includes its unit.
  for (const char* window : {"10m", "600s", "PT10M"}) {
    EXPECT_EQ(
        *ParseLimit(R"({"userId":"42","rateLimit":5,"timeWindow":")" + std::string(window) + "\"}"),
        wanted);
  }
  EXPECT_EQ(LimitProblem(R"({"userId":"42","rateLimit":5,"timeWindow":"90s"})"),
            "timeWindow must be whole minutes, got '90s'");
  EXPECT_NE(LimitProblem(R"({"userId":"42","rateLimit":5,"timeWindow":"10"})"), "");
}

TEST(NotifyJson, AFieldThatIsThereTwiceIsRefused) {
  EXPECT_EQ(SendProblem(R"({"userId":"42","message":"hi","userId":"43"})"),
            "field userId is there twice");
  EXPECT_EQ(LimitProblem(R"({"userId":"42","rateLimit":5,"rateLimit":500,"timeWindow":10})"),
            "field rateLimit is there twice");
}

TEST(NotifyJson, AFieldThatIsThereUnderBothNamesIsRefused) {
  EXPECT_EQ(SendProblem(R"({"userId":"42","message":"hi","user_id":"43"})"),
            "userId and user_id are the same field; give one of them");
  EXPECT_EQ(
      SendProblem(R"({"userId":"42","message":"hi","idempotency_key":"a","idempotencyKey":"a"})"),
      "idempotencyKey and idempotency_key are the same field; give one of them");
  EXPECT_EQ(LimitProblem(R"({"userId":"42","rateLimit":5,"rate_limit":500,"timeWindow":10})"),
            "rateLimit and rate_limit are the same field; give one of them");
  EXPECT_EQ(LimitProblem(R"({"userId":"42","rateLimit":5,"timeWindow":1,"time_window":10})"),
            "timeWindow and time_window are the same field; give one of them");
  EXPECT_FALSE(ParseKeepCount(R"({"keepCount":true,"keep_count":false})").ok());
  // A null field counts as missing.
  EXPECT_EQ(SendProblem(R"({"userId":"42","message":"hi","user_id":null})"), "none");
}

TEST(NotifyJson, DeadLettersAreChosenInOneWay) {
  const auto problem = [](std::string_view body) {
    const Result<DeadChoice> choice = ParseDeadChoice(body);
    return choice.ok() ? std::string("none") : choice.error().message;
  };
  EXPECT_EQ(problem(R"({"eventIds":["a"]})"), "none");
  EXPECT_EQ(problem(R"({"eventIds":["a"],"eventIds":["b"]})"), "field eventIds is there twice");
  EXPECT_EQ(problem(R"({"userId":"42","userId":"43"})"), "field userId is there twice");
  EXPECT_EQ(problem(R"({"all":true,"all":false})"), "field all is there twice");
  EXPECT_THAT(problem(R"({"userId":"42","all":true})"), HasSubstr("must have one of"));
}

TEST(NotifyJson, QuietHoursHaveOneOfEachField) {
  const Result<Preferences> twice = ParsePreferences(
      R"({"quietHours":{"from":"22:00","to":"07:00","zone":"UTC","to":"09:00"}})", "42");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message, "quietHours: field to is there twice");
}

TEST(NotifyJson, TheCountIsKeptOnlyIfTheBodySaysSo) {
  EXPECT_FALSE(*ParseKeepCount(R"({"userId":"42","rateLimit":5,"timeWindow":10})"));
  EXPECT_FALSE(*ParseKeepCount(R"({"keepCount":false})"));
  EXPECT_TRUE(*ParseKeepCount(R"({"keepCount":true})"));
  EXPECT_TRUE(*ParseKeepCount(R"({"keep_count":true})"));
  EXPECT_EQ(ParseKeepCount(R"({"keepCount":"true"})").error().message,
            "keepCount must be a boolean, got \"true\"");
  EXPECT_EQ(ParseKeepCount(R"({"keepcount":true})").error().message,
            "unknown field keepcount; did you mean keepCount?");
}

TEST(NotifyJson, NamesAllThatIsMissingOrWrong) {
  EXPECT_EQ(LimitProblem("{}"), "missing required fields: userId, rateLimit, timeWindow");
  EXPECT_EQ(LimitProblem(R"({"userId":null,"rateLimit":1,"timeWindow":1})"),
            "missing required fields: userId");
  EXPECT_THAT(LimitProblem(R"({"userId":true,"rateLimit":1,"timeWindow":1})"), HasSubstr("userId"));
  EXPECT_THAT(LimitProblem(R"({"userId":"u","rateLimit":1.5,"timeWindow":1})"),
              HasSubstr("rateLimit must be a whole number, got 1.5"));
  EXPECT_THAT(LimitProblem(R"({"userId":"u","rateLimit":1,"timeWindow":-1})"),
              AllOf(HasSubstr("timeWindow must be a whole number from 1"), EndsWith(", got -1")));
  EXPECT_THAT(LimitProblem("[1]"), HasSubstr("JSON object"));
  EXPECT_EQ(SendProblem(R"({"userId":"u"})"), "missing required fields: message");
  EXPECT_THAT(SendProblem(R"({"userId":"u","message":7})"), HasSubstr("message must be a string"));
  EXPECT_THAT(SendProblem(R"({"userId":"u","message":""})"), HasSubstr("message"));
}

TEST(NotifyJson, AFieldThatIsNearlyOneOfOursIsRefused) {
  const std::string begin = R"({"userId":"u","message":"m")";
  EXPECT_EQ(SendProblem(begin + R"(,"Recipient":"+49 30 1"})"),
            "unknown field Recipient; did you mean recipient?");
  EXPECT_THAT(SendProblem(begin + R"(,"idempotencykey":"k"})"), HasSubstr("did you mean"));
  EXPECT_EQ(SendProblem(begin + R"(,"chanel":"email"})"),
            "unknown field chanel; did you mean channel?");
  EXPECT_EQ(SendProblem(begin + R"(,"recipent":"a@b.example"})"),
            "unknown field recipent; did you mean recipient?");
  EXPECT_EQ(SendProblem(begin + R"(,"idempotency_key":"k","priority":1,"messageId":7})"), "none");
  EXPECT_EQ(SendProblem(R"({"user_id":"u","message":"m","user_ip":"192.0.2.1"})"), "none")
      << "the field is there under its other name";
}

// They are replaced as a whole: a misspelled preference would be removed.
TEST(NotifyJson, AMisspeltPreferenceIsRefused) {
  EXPECT_THAT(
      ParsePreferences(R"({"optout":["sms"]})", "u").error().message,
      HasSubstr(
          "optout is not a field of preferences; did you mean optOut? The fields are userId, "));
  EXPECT_TRUE(ParsePreferences(R"({"userId":"u","optOut":["sms"]})", "u").ok());
}

TEST(NotifyJson, TakesTheKeyOfTheHeaderBeforeTheFieldS) {
  const char* const body = R"({"userId":"u","message":"m","idempotencyKey":"field"})";
  EXPECT_EQ(ParseSend(body, "")->idempotency_key, "field");
  EXPECT_EQ(ParseSend(body, "header")->idempotency_key, "header");
  EXPECT_FALSE(ParseSend(body, std::string(256, 'k')).ok());
}

TEST(NotifyJson, ShowsTheQuotaOfARunningWindowAlone) {
  const notify::UserLimit limit{"u", 3, 1, 5, 0};
  EXPECT_EQ(
      QuotaBody(limit, 1),
      R"({"userId":"u","limit":3,"used":5,"remaining":0,"resetsAt":"1970-01-01T00:01:00.000Z"})");
  EXPECT_EQ(QuotaBody(limit, 60'000'000), R"({"userId":"u","limit":3,"used":0,"remaining":3})");
}

}  // namespace
}  // namespace weir::notify
