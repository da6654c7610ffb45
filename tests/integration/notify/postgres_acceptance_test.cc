// The gateway's acceptance criteria 1 to 4 and 8, one test each, with PostgreSQL and Kafka.

#include <thread>

#include "integration/notify/fixture.h"
#include "support/stopwatch.h"

namespace weir::notify::test {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class NotifyAcceptance : public ServersTest {
 protected:
  Gateways gateway{*servers_, Path::kPostgres};
};

TEST_F(NotifyAcceptance, R1_1_AValidConfigIsStoredWithCountZeroAndTheTimeNow) {
  const Response saved = gateway.Configure("r1_1", 5, 10);
  EXPECT_EQ(saved.status, 200);
  EXPECT_EQ(saved.body, R"({"userId":"r1_1","rateLimit":5,"timeWindow":10,"currentCount":0,)"
                        R"("lastRefreshTime":"2026-01-02T03:04:05.000Z"})");
  EXPECT_EQ(servers_->RowOf("r1_1"), "5|10|0|2026-01-02 03:04:05");
}

TEST_F(NotifyAcceptance, R1_2_AConfigThatLacksFieldsIsRefusedNamingThem) {
  const Response response = gateway.Call("POST", "/api/config", R"({"rateLimit":5})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("userId, timeWindow"));
  EXPECT_THAT(gateway.Call("POST", "/api/config", R"({"userId":"x","timeWindow":1})").body,
              HasSubstr("rateLimit"));
  EXPECT_EQ(gateway.Call("POST", "/api/config", "nonsense").status, 400);
  EXPECT_EQ(
      gateway.Call("POST", "/api/config", R"({"user_id":"r1_2","rate_limit":1,"time_window":1})")
          .status,
      200);
}

TEST_F(NotifyAcceptance, R1_3_AConfigThatExistsIsReplacedAndCountsFromZero) {
  gateway.Configure("r1_3", 5, 10);
  EXPECT_EQ(gateway.Send("r1_3").status, 200);
  gateway.clock.Advance(minutes(1));
  EXPECT_EQ(gateway.Configure("r1_3", 7, 20).status, 200);
  EXPECT_EQ(servers_->RowOf("r1_3"), "7|20|0|2026-01-02 03:05:05");
}

TEST_F(NotifyAcceptance, R1_4_WithoutTheTableAConfigIsAnswered503NamingPostgres) {
  ASSERT_EQ(gateway.Configure("r1_4", 1, 1).status, 200);
  servers_->postgres.Stop();
  const Response response = gateway.Configure("r1_4", 2, 2);
  const Response send = gateway.Send("r1_4");
  servers_->postgres.Start();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("PostgreSQL is temporarily unavailable"));
  EXPECT_EQ(send.status, 503);
  EXPECT_THAT(send.body, HasSubstr("PostgreSQL"));
  EXPECT_TRUE(weir::test::WaitUntil([&] { return gateway.Send("r1_4").status == 200; }));
}

TEST_F(NotifyAcceptance, R2_1_ASendWaitsForTheLockOfTheUsersRow) {
  gateway.Configure("r2_1", 5, 10);
  gateway.Configure("warm", 1, 1);
  EXPECT_EQ(gateway.Send("warm").status, 200);
  gateway.Configure("r2_1b", 1, 1);
  std::thread holder = servers_->HoldRow("r2_1", "1.4");
  std::future<Response> send = gateway.StartSend("r2_1");
  EXPECT_EQ(send.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  // Another user does not wait.
  EXPECT_EQ(gateway.Send("r2_1b").status, 200);
  EXPECT_EQ(send.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(Gateways::Wait(std::move(send)).status, 200);
  holder.join();
  EXPECT_EQ(servers_->CountOf("r2_1"), "1");
}

TEST_F(NotifyAcceptance, R2_2_AWindowThatIsOverStartsAnewWithCountOne) {
  gateway.Configure("r2_2", 2, 10);
  EXPECT_EQ(gateway.SendMany("r2_2", 2), (std::map<int, int>{{200, 2}}));
  gateway.clock.Advance(minutes(10));  // greater than or equal: the window is over exactly now
  EXPECT_EQ(gateway.Send("r2_2").status, 200);
  EXPECT_EQ(servers_->RowOf("r2_2"), "2|10|1|2026-01-02 03:14:05");
}

TEST_F(NotifyAcceptance, R2_3_BelowTheLimitASendIsCountedAndPublished) {
  gateway.Configure("r2_3", 2, 10);
  gateway.clock.Advance(minutes(9));
  const Response sent = gateway.Send("r2_3", "first");
  EXPECT_EQ(sent.status, 200);
  // Not "SENT": that is the status of a message delivered to its provider.
  EXPECT_THAT(sent.body, HasSubstr(R"("status":"QUEUED")"));
  EXPECT_EQ(HeaderOf(sent, "X-RateLimit-Remaining"), "1");
  EXPECT_EQ(servers_->RowOf("r2_3"), "2|10|1|2026-01-02 03:04:05");
  EXPECT_THAT(servers_->EventsOf("r2_3"), SizeIs(1));
}

TEST_F(NotifyAcceptance, R2_4_AtTheLimitASendIsAnswered429WithRetryAfter) {
  gateway.Configure("r2_4", 1, 10);
  EXPECT_EQ(gateway.Send("r2_4").status, 200);
  gateway.clock.Advance(minutes(3));
  const Response response = gateway.Send("r2_4");
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.body, HasSubstr("rate limit exceeded"));
  EXPECT_EQ(HeaderOf(response, "Retry-After"), "420");  // 7 minutes are left
  EXPECT_EQ(servers_->CountOf("r2_4"), "1");
  EXPECT_THAT(servers_->EventsOf("r2_4"), SizeIs(1));
}

TEST_F(NotifyAcceptance, R2_5_AUserWithoutARowIsAnswered404) {
  const Response response = gateway.Send("r2_5");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("no configuration exists for user 'r2_5'"));
  EXPECT_THAT(servers_->EventsOf("r2_5"), IsEmpty());
}

TEST_F(NotifyAcceptance, R2_6_ASendIsCountedOnlyAfterItsPublishIsConfirmed) {
  gateway.Configure("r2_6", 5, 10);
  servers_->kafka.Pause();
  std::future<Response> send = gateway.StartSend("r2_6");
  EXPECT_EQ(send.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
  EXPECT_EQ(servers_->CountOf("r2_6"), "0");
  servers_->kafka.Resume();
  EXPECT_EQ(Gateways::Wait(std::move(send)).status, 200);
  EXPECT_EQ(servers_->CountOf("r2_6"), "1");
}

TEST_F(NotifyAcceptance, R3_1_AStuckLockIsWaitedForABoundedTimeAndNothingIsCounted) {
  Gateways impatient(*servers_, Path::kPostgres, {.lock_timeout = std::chrono::milliseconds(150)});
  impatient.Configure("r3_1", 5, 10);
  std::thread holder = servers_->HoldRow("r3_1", "1.5");
  const Response response = impatient.Send("r3_1");
  holder.join();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("PostgreSQL"));
  EXPECT_EQ(servers_->CountOf("r3_1"), "0");
  EXPECT_THAT(servers_->EventsOf("r3_1"), IsEmpty());
}

TEST_F(NotifyAcceptance, R3_2_OfTwoHundredForOnePlaceExactlyOneIsSent) {
  gateway.Configure("r3_2", 3, 10);
  EXPECT_EQ(gateway.SendMany("r3_2", 2), (std::map<int, int>{{200, 2}}));
  // Half of them through another process's gateway.
  Gateways other(*servers_, Path::kPostgres);
  std::map<int, int> there;
  std::thread thread([&] { there = other.SendMany("r3_2", 100); });
  std::map<int, int> here = gateway.SendMany("r3_2", 100);
  thread.join();
  EXPECT_EQ(here[200] + there[200], 1);
  EXPECT_EQ(here[429] + there[429], 199);
  EXPECT_EQ(servers_->CountOf("r3_2"), "3");
  EXPECT_THAT(servers_->EventsOf("r3_2"), SizeIs(3));
}

TEST_F(NotifyAcceptance, R3_3_AWindowIsRefreshedBeforeItIsJudged) {
  gateway.Configure("r3_3", 2, 5);
  EXPECT_EQ(gateway.SendMany("r3_3", 5), (std::map<int, int>{{200, 2}, {429, 3}}));
  gateway.clock.Advance(minutes(6));
  EXPECT_EQ(gateway.SendMany("r3_3", 5), (std::map<int, int>{{200, 2}, {429, 3}}));
  EXPECT_EQ(servers_->RowOf("r3_3"), "2|5|2|2026-01-02 03:10:05");
}

TEST_F(NotifyAcceptance, R4_1_AnAllowedSendIsOnTheTopicWithUserAndMessage) {
  gateway.Configure("r4_1", 2, 10);
  const Response sent = gateway.Send("r4_1", "the payload");
  const std::vector<Event> events = servers_->EventsOf("r4_1");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].user_id, "r4_1");
  EXPECT_EQ(events[0].message, "the payload");
  EXPECT_THAT(sent.body, HasSubstr("\"eventId\":\"" + events[0].id + "\""));
}

TEST_F(NotifyAcceptance, R4_2_WithoutTheBrokerASendIsAnswered503AndNotCounted) {
  gateway.Configure("r4_2", 1, 10);
  servers_->kafka.Kill();
  const weir::test::Stopwatch watch;
  const Response response = gateway.Send("r4_2");
  EXPECT_LT(watch.elapsed(), std::chrono::seconds(5));
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("Kafka is temporarily unavailable"));
  EXPECT_EQ(servers_->CountOf("r4_2"), "0");
  servers_->kafka.Start();
  // The place is still available.
  EXPECT_TRUE(weir::test::WaitUntil([&] { return gateway.Send("r4_2").status == 200; }));
  EXPECT_EQ(gateway.Send("r4_2").status, 429);
}

TEST_F(NotifyAcceptance, R4_3_OfABatchOnlyWhatWasConfirmedIsCounted) {
  gateway.Configure("r4_3", 100, 10);
  EXPECT_EQ(gateway.SendMany("r4_3", 40), (std::map<int, int>{{200, 40}}));
  EXPECT_EQ(servers_->CountOf("r4_3"), "40");
  EXPECT_THAT(servers_->EventsOf("r4_3"), SizeIs(40));
}

TEST_F(NotifyAcceptance, R8_1_ASendGoesThroughARealPostgresAndARealKafka) {
  EXPECT_THAT(servers_->Ask("SELECT version()"), HasSubstr("PostgreSQL"));
  gateway.Configure("r8_1", 2, 10);
  EXPECT_EQ(gateway.Send("r8_1").status, 200);
  EXPECT_EQ(servers_->RowOf("r8_1"), "2|10|1|2026-01-02 03:04:05");
  EXPECT_THAT(servers_->EventsOf("r8_1"), SizeIs(1));  // read back by kcat
}

TEST_F(NotifyAcceptance, R8_2_AfterTheLimitSendsAreAnswered429) {
  gateway.Configure("r8_2", 3, 1);
  EXPECT_EQ(gateway.SendMany("r8_2", 3), (std::map<int, int>{{200, 3}}));
  EXPECT_EQ(gateway.SendMany("r8_2", 2), (std::map<int, int>{{429, 2}}));
}

TEST_F(NotifyAcceptance, R8_3_FromConfigOverTheLimitToTheNextWindow) {
  EXPECT_THAT(gateway.Configure("r8_3", 3, 1).body, HasSubstr("\"currentCount\":0"));
  EXPECT_EQ(gateway.SendMany("r8_3", 3), (std::map<int, int>{{200, 3}}));
  EXPECT_EQ(gateway.Send("r8_3").status, 429);
  gateway.clock.Advance(minutes(1));
  EXPECT_EQ(gateway.Send("r8_3").status, 200);
  EXPECT_EQ(servers_->CountOf("r8_3"), "1");
}

TEST_F(NotifyAcceptance, ARepeatedKeyIsAnsweredAsTheFirstAndNotCounted) {
  gateway.Configure("keys", 5, 10);
  const Response first = gateway.Send("keys", "m", "k1");
  const Response again = gateway.Send("keys", "m", "k1");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(HeaderOf(again, "Idempotency-Replayed"), "true");
  EXPECT_EQ(gateway.Send("keys", "other", "k1").status, 400);
  EXPECT_EQ(servers_->CountOf("keys"), "1");
  // All concurrently.
  std::vector<std::future<Response>> sends;
  sends.reserve(30);
  for (int i = 0; i < 30; ++i) sends.push_back(gateway.StartSend("keys", "m", "k2"));
  for (auto& send : sends) EXPECT_EQ(Gateways::Wait(std::move(send)).status, 200);
  EXPECT_EQ(servers_->CountOf("keys"), "2");
  EXPECT_THAT(servers_->EventsOf("keys"), SizeIs(2));
  // A day later the key has expired (and the window is another).
  gateway.clock.Advance(std::chrono::hours(25));
  EXPECT_NE(gateway.Send("keys", "m", "k1").body, first.body);
}

TEST_F(NotifyAcceptance, TheQuotaIsShown) {
  gateway.Configure("quota", 5, 10);
  gateway.Send("quota");
  EXPECT_EQ(gateway.Call("GET", "/api/quota/quota").body,
            R"({"userId":"quota","limit":5,"used":1,"remaining":4,)"
            R"("resetsAt":"2026-01-02T03:14:05.000Z"})");
  gateway.clock.Advance(minutes(10));
  EXPECT_EQ(gateway.Call("GET", "/api/quota/quota").body,
            R"({"userId":"quota","limit":5,"used":0,"remaining":5})");
  EXPECT_THAT(gateway.Call("GET", "/api/config/quota").body, HasSubstr("\"rateLimit\":5"));
  EXPECT_EQ(gateway.Call("GET", "/api/config/nobody").status, 404);
}

}  // namespace
}  // namespace weir::notify::test
