#include "slots/api/execution_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::slots {
namespace {

using testing::HasSubstr;

std::string ClaimMessage(std::string_view body) {
  Result<ClaimRequest> claim = ParseClaim(body);
  return claim.ok() ? "ok" : claim.error().message;
}

std::string FailedMessage(std::string_view body) {
  Result<std::vector<Finish>> ends = ParseFinishes(body, true);
  return ends.ok() ? "ok" : ends.error().message;
}

TEST(ExecutionJson, ReadsAClaim) {
  const ClaimRequest claim =
      *ParseClaim(R"({"config":"pay","max":7,"leaseMs":5000,"aheadMs":250,"by":"d1"})");
  EXPECT_EQ(claim.config, "pay");
  EXPECT_EQ(claim.max, 7U);
  EXPECT_EQ(claim.lease, 5'000);
  EXPECT_EQ(claim.ahead, 250);
  EXPECT_EQ(claim.by, "d1");
  const ClaimRequest plain = *ParseClaim(R"({"config":"pay"})");
  EXPECT_EQ(plain.max, 100U);
  EXPECT_EQ(plain.lease, 30'000);
  EXPECT_EQ(plain.ahead, 0);
}

TEST(ExecutionJson, NamesTheFieldOfAClaimAtFault) {
  EXPECT_THAT(ClaimMessage("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(ClaimMessage("{}"), HasSubstr("config is missing"));
  EXPECT_THAT(ClaimMessage(R"({"config":"pay","max":0})"), HasSubstr("max"));
  EXPECT_THAT(ClaimMessage(R"({"config":"pay","max":1001})"), HasSubstr("max"));
  EXPECT_THAT(ClaimMessage(R"({"config":"pay","max":"7"})"), HasSubstr("max must be a whole"));
  EXPECT_THAT(ClaimMessage(R"({"config":"pay","leaseMs":99})"), HasSubstr("leaseMs"));
  EXPECT_THAT(ClaimMessage(R"({"config":"pay","aheadMs":60001})"), HasSubstr("aheadMs"));
}

TEST(ExecutionJson, ReadsHowAClaimEnded) {
  const Finish done = *ParseFinish(R"({"attempt":2,"endedAgoMs":1500})", "e", false);
  EXPECT_EQ(done.event_id, "e");
  EXPECT_EQ(done.attempt, 2);
  EXPECT_EQ(done.ago, 1'500);
  EXPECT_EQ(done.now, 0) << "the clock is the store's";
  const Finish failed =
      *ParseFinish(R"({"attempt":1,"error":"503","retryTime":"2025-06-01T12:00:00Z"})", "e", true);
  EXPECT_EQ(failed.ago, 0);
  EXPECT_EQ(failed.error, "503");
  EXPECT_EQ(failed.retry_at, 1'748'779'200'000);
}

TEST(ExecutionJson, AFieldThatIsNearlyOneOfOursIsRefused) {
  EXPECT_EQ(
      ParseFinish(R"({"attempt":1,"retrytime":"2025-06-01T12:00:00Z"})", "e", true).error().message,
      "unknown field retrytime; did you mean retryTime?");
  EXPECT_EQ(ParseClaim(R"({"config":"pay","lease_ms":60000})").error().message,
            "unknown field lease_ms; did you mean leaseMs?");
  EXPECT_EQ(ParseClaim(R"({"config":"pay","maxx":1})").error().message,
            "unknown field maxx; did you mean max?");
}

// If each were looked for in the whole body, this would take minutes.
TEST(ExecutionJson, ManyNamesThatAreNearlyOneOfOursCostLittle) {
  std::string body = R"({"config":"pay")";
  for (int i = 0; i < 300'000; ++i) body += R"(,"b":0)";
  EXPECT_TRUE(ParseClaim(body + R"(,"by":"x"})").ok());
}

TEST(ExecutionJson, NamesTheFieldOfAnEndAtFault) {
  EXPECT_THAT(FailedMessage(R"({"events":{}})"), HasSubstr("events must be an array"));
  EXPECT_THAT(FailedMessage(R"({"events":[]})"), HasSubstr("must not be empty"));
  EXPECT_THAT(FailedMessage(R"({"events":[7]})"), HasSubstr("events[0] must be an object"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e"}]})"), HasSubstr("attempt is missing"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e","attempt":0}]})"), HasSubstr("attempt"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e","attempt":1,"endedAgoMs":-1}]})"),
              HasSubstr("endedAgoMs must be from 0 to 86400000"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e","attempt":1,"endedAgoMs":86400001}]})"),
              HasSubstr("endedAgoMs"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e","attempt":1,"endedAgoMs":"1s"}]})"),
              HasSubstr("endedAgoMs must be a whole number"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e","attempt":1,"retryTime":"soon"}]})"),
              HasSubstr("retryTime"));
  EXPECT_THAT(FailedMessage(R"({"events":[{"eventId":"e","attempt":1,"error":7}]})"),
              HasSubstr("error must be a string"));
}

TEST(ExecutionJson, AReportHasOneListOfEvents) {
  const auto ends = ParseFinishes(
      R"({"events":[{"eventId":"a","attempt":1}],"events":[{"eventId":"b","attempt":1}]})", false);
  ASSERT_FALSE(ends.ok());
  EXPECT_EQ(ends.error().message, "field events is there twice");
}

}  // namespace
}  // namespace weir::slots
