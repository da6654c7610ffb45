#include "notify/event.h"

#include <gmock/gmock.h>

#include "notify/provider.h"

namespace weir::notify {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// 2026-01-02T03:04:05Z = 1767323045 s: 20455 days (56 years with 14 leap days, and one day) × 86400
// + 3 × 3600 + 4 × 60 + 5.
constexpr Micros kTime = 1'767'323'045'678'000;

TEST(Event, IsWrittenWithItsIdUserMessageAndTime) {
  EXPECT_EQ(
      EncodeEvent({"e1", "42", "hello", kTime}),
      R"({"id":"e1","userId":"42","message":"hello","timestamp":"2026-01-02T03:04:05.678Z"})");
}

TEST(Event, ComesBackAsItWasWritten) {
  const Event event{"e1", "zoë \"q\" \\", std::string("a\nb\t\x01\x7f ü ", 11) + '\0' + "x", kTime};
  const Result<Event> read = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, event);
}

TEST(Event, SaysWhatIsWrongWithAMalformedOne) {
  const auto problem = [](std::string_view json) {
    const Result<Event> read = DecodeEvent(json);
    return read.ok() ? std::string("none") : read.error().message;
  };
  EXPECT_THAT(problem("not json"), HasSubstr("JSON object"));
  EXPECT_THAT(problem("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(problem(""), HasSubstr("JSON object"));
  EXPECT_THAT(problem(R"({"id":"1","message":"m"})"), HasSubstr("userId is missing"));
  EXPECT_THAT(problem(R"({"id":"1","userId":7,"message":"m"})"),
              HasSubstr("userId must be a string"));
  EXPECT_THAT(problem(R"({"id":"1","userId":"u","message":""})"), HasSubstr("message must have"));
  EXPECT_THAT(problem(R"({"userId":"u","message":"m"})"), HasSubstr("id is missing"));
  EXPECT_THAT(
      problem(R"({"id":"1","userId":"u","message":"m","timestamp":"2026-13-02T03:04:05.678Z"})"),
      HasSubstr("timestamp"));
}

TEST(Event, WithoutAKeyHasAnIdOfItsOwn) {
  const SendRequest request{"u", "m"};
  const std::string id = MakeEvent(request, kTime).id;
  EXPECT_NE(id, MakeEvent(request, kTime).id);
  EXPECT_THAT(id,
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST(Event, WithAKeyHasTheSameIdWhenRepeated) {
  const SendRequest request{"u", "m", "k"};
  const std::string id = MakeEvent(request, kTime).id;
  EXPECT_EQ(id, MakeEvent(request, kTime + 1'000'000).id);
  EXPECT_NE(id, MakeEvent({"u", "m", "k2"}, kTime).id);
  EXPECT_NE(id, MakeEvent({"u2", "m", "k"}, kTime).id);
  EXPECT_NE(id, MakeEvent({"u", "m2", "k"}, kTime).id);
  EXPECT_NE(id, MakeEvent(request, kTime + kKeyLifetime).id);
  EXPECT_EQ(id, MakeEvent(request, kTime + kKeyLifetime).earlier_id);
  EXPECT_EQ(MakeEvent({"u", "m"}, kTime).earlier_id, "");
}

TEST(ConsoleProvider, PrintsOneLineWhateverTheMessageHolds) {
  EXPECT_EQ(SentLine({"e1", "42", "a\nSMS SENT \"x\"", 0}),
            "SMS SENT userId=\"42\" message=\"a\\nSMS SENT \\\"x\\\"\" eventId=e1\n");
}

TEST(UserLimit, ExpiresWhenItsWindowIsOver) {
  // 5 minutes = 300,000,000 µs.
  const UserLimit limit{"u", 1, 5, 0, 1'000};
  EXPECT_FALSE(limit.Expired(300'000'999));
  EXPECT_TRUE(limit.Expired(300'001'000));
}

TEST(Checks, NameTheFieldAtFault) {
  EXPECT_THAT(CheckLimit({"", 1, 1}).error().message, HasSubstr("userId"));
  EXPECT_THAT(CheckLimit({"u\n", 1, 1}).error().message, HasSubstr("userId"));
  EXPECT_THAT(CheckLimit({"u", 0, 1}).error().message, HasSubstr("rateLimit"));
  EXPECT_THAT(CheckLimit({"u", kMaxRateLimit + 1, 1}).error().message, HasSubstr("rateLimit"));
  EXPECT_THAT(CheckLimit({"u", 1, 0}).error().message, HasSubstr("timeWindow"));
  EXPECT_THAT(CheckLimit({"u", 1, kMaxTimeWindow + 1}).error().message, HasSubstr("timeWindow"));
  EXPECT_TRUE(CheckLimit({std::string(256, 'u'), kMaxRateLimit, kMaxTimeWindow}).ok());
  EXPECT_THAT(CheckLimit({std::string(257, 'u'), 1, 1}).error().message, HasSubstr("userId"));
  EXPECT_THAT(CheckSend({"u", ""}).error().message, HasSubstr("message"));
  EXPECT_THAT(CheckSend({"u", std::string(16'385, 'm')}).error().message, HasSubstr("message"));
  EXPECT_TRUE(CheckSend({"u", std::string(16'384, 'm')}).ok());
  EXPECT_THAT(CheckSend({"u", "m", std::string(256, 'k')}).error().message,
              HasSubstr("Idempotency-Key"));
}

// PostgreSQL would refuse everything in the same transaction.
TEST(Checks, RefuseTextThatIsNotUtf8) {
  for (const SendRequest& wrong : {SendRequest{"u", "m", "\xff"}, SendRequest{"u", "m", "a\x01"}}) {
    const Status checked = CheckSend(wrong);
    ASSERT_FALSE(checked.ok());
    EXPECT_THAT(checked.error().message, HasSubstr("Idempotency-Key must be UTF-8"));
  }
  EXPECT_TRUE(CheckSend({"u", "m", "sch\xc3\xb6n"}).ok());
  EXPECT_TRUE(CheckSend({"u", "two\nlines"}).ok());
  // For an Idempotency-Key, it would equal "m" on the channel sms to b.
  EXPECT_FALSE(CheckSend({"u", std::string("m\0sms\0b", 7)}).ok());
  EXPECT_FALSE(CheckLimit({"u\xff", 1, 1}).ok());
}

}  // namespace
}  // namespace weir::notify
