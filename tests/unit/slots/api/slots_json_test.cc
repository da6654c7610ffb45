#include "slots/api/slots_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::slots {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

std::string MessageOf(std::string_view body) {
  Result<slots::Ask> ask = ParseAsk(body);
  return ask.ok() ? "ok" : ask.error().message;
}

TEST(SlotsJson, ReadsAnEvent) {
  const slots::Ask ask = *ParseAsk(
      R"({"eventId":"e1","configName":"pay","requestedTime":"2025-06-01T14:00:00+02:00","tenant":"t"})");
  EXPECT_EQ(ask.event_id, "e1");
  EXPECT_EQ(ask.config, "pay");
  EXPECT_EQ(ask.requested, 1'748'779'200'000);
  EXPECT_EQ(ask.tenant, "t");
}

TEST(SlotsJson, NamesTheFieldAtFault) {
  EXPECT_THAT(MessageOf(""), HasSubstr("JSON object"));
  EXPECT_THAT(MessageOf("[1]"), HasSubstr("JSON object"));
  EXPECT_THAT(MessageOf("{}"), HasSubstr("eventId is missing"));
  EXPECT_THAT(MessageOf(R"({"eventId":7})"), HasSubstr("eventId must be a string, got 7"));
  EXPECT_THAT(MessageOf(R"({"eventId":""})"), HasSubstr("eventId must not be empty"));
  EXPECT_THAT(MessageOf(R"({"eventId":"a\u0000b"})"), HasSubstr("eventId"));
  EXPECT_THAT(MessageOf(R"({"eventId":"e"})"), HasSubstr("configName is missing"));
  EXPECT_THAT(MessageOf(R"({"eventId":"e","configName":"c"})"),
              HasSubstr("requestedTime is missing"));
  EXPECT_THAT(MessageOf(R"({"eventId":"e","configName":"c","requestedTime":"noon"})"),
              AllOf(HasSubstr("requestedTime must be an ISO-8601"), EndsWith(", got 'noon'")));
  EXPECT_THAT(
      MessageOf(
          R"({"eventId":"e","configName":"c","tenant":3,"requestedTime":"2025-06-01T12:00:00Z"})"),
      HasSubstr("tenant"));
}

// One reader takes the first of two, another the last: whoever checks a payment before may see
// another one than we do.
TEST(SlotsJson, AFieldThatIsThereTwiceIsRefused) {
  EXPECT_EQ(
      MessageOf(
          R"({"eventId":"e","configName":"c","requestedTime":"2025-06-01T12:00:00Z","payload":"1 EUR","payload":"9 EUR"})"),
      "field payload is there twice");
  EXPECT_EQ(
      MessageOf(
          R"({"eventId":"e","configName":"c","requestedTime":"2025-06-01T12:00:00Z","other":1,"other":2})"),
      "ok");
  const Result<Config> config = ParseConfig(
      R"({"configName":"pay","windowSize":"PT4S","maxPerWindow":100,"maxPerWindow":1000})");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().message, "field maxPerWindow is there twice");
}

TEST(SlotsJson, ABatchHasOneListOfEvents) {
  const std::string event =
      R"({"eventId":"e","configName":"c","requestedTime":"2025-06-01T12:00:00Z"})";
  const auto batch = ParseBatch(R"({"events":[)" + event + R"(],"events":[]})");
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().message, "field events is there twice");
  EXPECT_TRUE(ParseBatch(R"({"other":1,"events":[)" + event + R"(],"other":2})").ok());
}

TEST(SlotsJson, AnEventThatIsWrongDoesNotSpoilItsBatch) {
  auto batch = *ParseBatch(
      R"({"events":[{"eventId":"e","configName":"c","requestedTime":"2025-06-01T12:00:00Z"},7,{"eventId":"f"}]})");
  ASSERT_EQ(batch.size(), 3U);
  EXPECT_TRUE(batch[0].status.ok());
  EXPECT_FALSE(batch[1].status.ok());
  EXPECT_EQ(batch[2].ask.event_id, "f");
  EXPECT_THAT(batch[2].status.error().message, HasSubstr("configName"));
  EXPECT_FALSE(ParseBatch(R"({"events":[]})").ok());
  EXPECT_FALSE(ParseBatch(R"({"events":{}})").ok());
  std::string many = R"({"events":[0)";
  for (std::size_t i = 0; i < slots::kMaxBatch; ++i) many += ",0";
  EXPECT_FALSE(ParseBatch(many + "]}").ok());
}

TEST(SlotsJson, ReadsAndWritesConfigs) {
  const slots::Config config = *ParseConfig(
      R"({"configName":"pay","windowSize":"PT4S","maxPerWindow":100,"tenants":{"b":2,"a":1}})");
  EXPECT_EQ(config.headroom, 100);
  EXPECT_EQ(config.fair_windows, 100);
  std::string out;
  JsonWriter json(out);
  AppendConfig(json, config);
  EXPECT_EQ(ParseConfig(R"({"configName":"c","windowSize":4,"maxPerWindow":1})").error().message,
            R"(windowSize must be a string, got 4; write it like "PT4S" or "4s")");
  EXPECT_EQ(out, R"({"configName":"pay","version":0,"windowSize":"PT4S","maxPerWindow":100,)"
                 R"("headroom":100,"fairWindows":100,"tenants":{"*":1,"a":1,"b":2},"active":true,)"
                 R"("createdAt":"1970-01-01T00:00:00Z"})");
  for (const char* body :
       {R"({"windowSize":"PT4S","maxPerWindow":1})", R"({"configName":"c","maxPerWindow":1})",
        R"({"configName":"c","windowSize":"4 parsecs","maxPerWindow":1})",
        R"({"configName":"c","windowSize":"PT4S"})",
        R"({"configName":"c","windowSize":"PT4S","maxPerWindow":1.5})",
        R"({"configName":"c","windowSize":"PT4S","maxPerWindow":0})",
        R"({"configName":"c","windowSize":"PT4S","maxPerWindow":1,"headroom":-1})",
        R"({"configName":"c","windowSize":"PT4S","maxPerWindow":1,"tenants":[]})"}) {
    EXPECT_FALSE(ParseConfig(body).ok()) << body;
  }
}

// Silently ignored, it would cause payments on days on which the bank is closed.
TEST(SlotsJson, AMisspeltFieldOfAConfigIsRefused) {
  const std::string begin = R"({"configName":"pay","windowSize":"PT4S","maxPerWindow":100)";
  const auto message = [&](const std::string& rest) {
    Result<slots::Config> config = ParseConfig(begin + rest + "}");
    return config.ok() ? "ok" : config.error().message;
  };
  EXPECT_THAT(message(R"(,"calender":{"zone":"UTC"})"),
              HasSubstr("calender is not a field of a config; did you mean calendar? The fields "
                        "are configName, "));
  EXPECT_THAT(
      message(R"(,"calendar":{"zone":"UTC","holiday":["2025-12-25"]})"),
      HasSubstr(
          "holiday is not a field of a calendar; did you mean holidays? The fields are zone, "));
  const std::string all =
      R"(,"headroom":5,"fairWindows":3,"tenants":{"a":1},"past":"now","calendar":)"
      R"({"zone":"UTC","days":["MON"],"open":"08:00","cutOff":"17:00","holidays":["2025-12-25"],)"
      R"("cutOffs":{"2025-12-24":"12:00"}})";
  EXPECT_EQ(message(all), "ok");
  EXPECT_TRUE(ParseConfig(ConfigBody(*ParseConfig(begin + all + "}"))).ok());
}

TEST(SlotsJson, AFieldThatIsNearlyOneOfOursIsRefused) {
  const std::string begin =
      R"({"eventId":"e","configName":"c","requestedTime":"2025-06-01T12:00:00Z")";
  EXPECT_EQ(MessageOf(begin + R"(,"payLoad":"5 EUR"})"),
            "unknown field payLoad; did you mean payload?");
  EXPECT_EQ(MessageOf(begin + R"(,"Tenant":"acme"})"),
            "unknown field Tenant; did you mean tenant?");
  for (const char* name : {"paylod", "pyload", "payloads"}) {
    EXPECT_EQ(MessageOf(begin + ",\"" + name + R"(":"5 EUR"})"),
              "unknown field " + std::string(name) + "; did you mean payload?");
  }
  EXPECT_EQ(MessageOf(begin + R"(,"branch":"Berlin","payloadType":"x","at":1})"), "ok")
      << "unrelated fields are ignored";
  EXPECT_EQ(ParseReschedule(R"({"requestedTime":"2025-06-01T12:00:00Z","config_name":"c"})", "e")
                .error()
                .message,
            "unknown field config_name; did you mean configName?");
}

TEST(SlotsJson, WritesASlot) {
  std::string out;
  JsonWriter json(out);
  AppendSlot(json, {"e\"1", "pay", "", 1'748'779'200'000, 1'748'779'204'000, 1'748'779'204'250},
             "NEW");
  EXPECT_EQ(out,
            R"({"eventId":"e\"1","configName":"pay","requestedTime":"2025-06-01T12:00:00Z",)"
            R"("scheduledTime":"2025-06-01T12:00:04.250Z","windowStart":"2025-06-01T12:00:04Z",)"
            R"("delayMs":4250,"status":"NEW"})");
}

}  // namespace
}  // namespace weir::slots
