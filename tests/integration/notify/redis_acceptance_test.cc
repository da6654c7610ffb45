// The gateway's acceptance criteria 9 to 11 and 13, one test each, with PostgreSQL, Redis and
// Kafka.

#include "integration/notify/fixture.h"
#include "telemetry/log.h"

namespace weir::notify::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;
using weir::test::WaitUntil;

class NotifyAcceptance : public ServersTest {
 protected:
  NotifyAcceptance() { EXPECT_TRUE(gateway.WaitForRedis(true)); }

  bool WaitForCount(const std::string& user, const std::string& count) {
    return WaitUntil([&] { return servers_->CountOf(user) == count; });
  }

  Gateways gateway{*servers_, Path::kRedis};
};

TEST_F(NotifyAcceptance, R9_1_RedisIsAskedFirst) {
  gateway.Configure("r9_1", 100, 10);
  EXPECT_EQ(gateway.Send("r9_1").status, 200);
  // Only Redis can have decided this: the table still has room.
  servers_->redis.Command({"HSET", "RateLimiterCache:r9_1", "currentCount", "100"});
  EXPECT_EQ(gateway.Send("r9_1").status, 429);
}

TEST_F(NotifyAcceptance, R9_2_WithAHashTheTableIsNotAsked) {
  gateway.Configure("r9_2", 5, 10);
  EXPECT_EQ(gateway.Send("r9_2").status, 200);
  ASSERT_TRUE(WaitForCount("r9_2", "1"));
  servers_->postgres.Stop();
  const Response sent = gateway.Send("r9_2");
  servers_->postgres.Start();
  EXPECT_EQ(sent.status, 200);
  EXPECT_TRUE(WaitForCount("r9_2", "2"));
}

TEST_F(NotifyAcceptance, R9_3_AConfigDeletesTheHashAndWithoutRedisSucceedsAllTheSame) {
  gateway.Configure("r9_3", 1, 10);
  EXPECT_EQ(gateway.Send("r9_3").status, 200);
  EXPECT_EQ(gateway.Send("r9_3").status, 429);
  gateway.clock.Advance(seconds(1));
  EXPECT_EQ(gateway.Configure("r9_3", 2, 10).status, 200);
  EXPECT_EQ(servers_->Redis({"EXISTS", "RateLimiterCache:r9_3"}), "0");
  EXPECT_EQ(gateway.SendMany("r9_3", 3), (std::map<int, int>{{200, 2}, {429, 1}}));
  servers_->redis.Pause();
  gateway.clock.Advance(seconds(1));
  const Response saved = gateway.Configure("r9_3", 3, 10);
  servers_->redis.Resume();
  EXPECT_EQ(saved.status, 200);
  // The old hash, still present in Redis, is not used.
  ASSERT_TRUE(gateway.WaitForRedis(true));
  EXPECT_EQ(gateway.SendMany("r9_3", 4), (std::map<int, int>{{200, 3}, {429, 1}}));
}

TEST_F(NotifyAcceptance, R9_4_TheHashLivesForTheRestOfTheWindow) {
  gateway.Configure("r9_4", 5, 10);
  gateway.clock.Advance(minutes(4) + seconds(30));
  gateway.Send("r9_4");
  // (10 - 4) × 60 = 360 s at most; exactly 330 s are left.
  EXPECT_THAT(servers_->Ttl("r9_4"), AllOf(Ge(310), Le(330)));
  gateway.clock.Advance(minutes(6));
  gateway.Send("r9_4");
  EXPECT_THAT(servers_->Ttl("r9_4"), AllOf(Ge(580), Le(600)));
  EXPECT_EQ(servers_->Hash("r9_4", "currentCount"), "1");
}

TEST_F(NotifyAcceptance, R10_1_AMissingHashIsFilledFromTheTable) {
  gateway.Configure("r10_1", 7, 10);
  EXPECT_EQ(servers_->Redis({"EXISTS", "RateLimiterCache:r10_1"}), "0");
  EXPECT_EQ(gateway.Send("r10_1").status, 200);
  EXPECT_EQ(servers_->Hash("r10_1", "rateLimit"), "7");
  EXPECT_EQ(servers_->Hash("r10_1", "currentCount"), "1");
  EXPECT_EQ(gateway.Send("r10_1_nobody").status, 404);
}

TEST_F(NotifyAcceptance, R10_2_AWindowThatIsOverBeginsAnewInBoth) {
  gateway.Configure("r10_2", 2, 10);
  EXPECT_EQ(gateway.SendMany("r10_2", 3), (std::map<int, int>{{200, 2}, {429, 1}}));
  ASSERT_TRUE(WaitForCount("r10_2", "2"));
  gateway.clock.Advance(minutes(10));
  EXPECT_EQ(gateway.Send("r10_2").status, 200);
  EXPECT_EQ(servers_->Hash("r10_2", "currentCount"), "1");
  EXPECT_THAT(servers_->Ttl("r10_2"), AllOf(Ge(580), Le(600)));
  EXPECT_TRUE(WaitUntil([&] { return servers_->RowOf("r10_2") == "2|10|1|2026-01-02 03:14:05"; }));
}

TEST_F(NotifyAcceptance, R10_3_ARunningWindowKeepsItsCount) {
  gateway.Configure("r10_3", 5, 10);
  EXPECT_EQ(gateway.SendMany("r10_3", 3), (std::map<int, int>{{200, 3}}));
  servers_->redis.Command({"DEL", "RateLimiterCache:r10_3"});
  EXPECT_EQ(gateway.SendMany("r10_3", 3), (std::map<int, int>{{200, 2}, {429, 1}}));
  EXPECT_EQ(servers_->Hash("r10_3", "currentCount"), "5");
}

TEST_F(NotifyAcceptance, R10_4_AMissWithoutTheTableIsAnswered503) {
  gateway.Configure("r10_4", 5, 10);
  servers_->postgres.Stop();
  const Response response = gateway.Send("r10_4");
  servers_->postgres.Start();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("PostgreSQL is temporarily unavailable"));
  EXPECT_TRUE(WaitUntil([&] { return gateway.Send("r10_4").status == 200; }));
}

TEST_F(NotifyAcceptance, R10_5_WithoutRedisPostgresDecidesAndTheLogSaysSo) {
  gateway.Configure("r10_5", 3, 10);
  EXPECT_EQ(gateway.Send("r10_5").status, 200);
  testing::internal::CaptureStderr();
  servers_->redis.Kill();
  EXPECT_EQ(gateway.SendMany("r10_5", 4), (std::map<int, int>{{200, 2}, {429, 2}}));
  servers_->redis.Start();
  EXPECT_TRUE(gateway.WaitForRedis(true));
  telemetry::FlushLog();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("REDIS DOWN — Falling back to Postgres"));
  EXPECT_EQ(servers_->CountOf("r10_5"), "3");
  EXPECT_EQ(gateway.Send("r10_5").status, 429);
}

TEST_F(NotifyAcceptance, R10_5_1_AConfigWritesNothingToRedis) {
  gateway.Configure("r10_5_1", 3, 10);
  EXPECT_EQ(servers_->Redis({"EXISTS", "RateLimiterCache:r10_5_1"}), "0");
  gateway.Send("r10_5_1");
  gateway.clock.Advance(seconds(1));
  gateway.Configure("r10_5_1", 4, 10);
  EXPECT_EQ(servers_->Redis({"EXISTS", "RateLimiterCache:r10_5_1"}), "0");
  EXPECT_EQ(servers_->RowOf("r10_5_1"), "4|10|0|2026-01-02 03:04:06");
}

TEST_F(NotifyAcceptance, R10_5_2_WithoutRedisAConfigIsSavedAndTheLogSaysSo) {
  gateway.Configure("r10_5_2", 1, 10);
  gateway.Send("r10_5_2");
  testing::internal::CaptureStderr();
  servers_->redis.Kill();
  gateway.clock.Advance(seconds(1));
  const Response saved = gateway.Configure("r10_5_2", 2, 10);
  telemetry::FlushLog();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("REDIS DOWN — Falling back to Postgres"));
  servers_->redis.Start();
  EXPECT_EQ(saved.status, 200);
  EXPECT_EQ(servers_->RowOf("r10_5_2"), "2|10|0|2026-01-02 03:04:06");
  EXPECT_TRUE(gateway.WaitForRedis(true));
}

TEST_F(NotifyAcceptance, R10_5_3_OnlyASendFillsRedis) {
  gateway.Configure("r10_5_3", 3, 10);
  gateway.Call("GET", "/api/quota/r10_5_3");
  EXPECT_EQ(servers_->Redis({"EXISTS", "RateLimiterCache:r10_5_3"}), "0");
  gateway.Send("r10_5_3");
  EXPECT_EQ(servers_->Redis({"EXISTS", "RateLimiterCache:r10_5_3"}), "1");
}

TEST_F(NotifyAcceptance, R11_5_OneScriptReadsComparesAndIncrements) {
  gateway.Configure("r11_5", 100, 10);
  EXPECT_EQ(gateway.Send("r11_5").status, 200);  // the hash and the script exist now
  servers_->redis.Command({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(gateway.SendMany("r11_5", 20), (std::map<int, int>{{200, 20}}));
  EXPECT_THAT(servers_->Redis({"INFO", "commandstats"}), HasSubstr("cmdstat_evalsha"));
  EXPECT_EQ(servers_->Hash("r11_5", "currentCount"), "21");
}

TEST_F(NotifyAcceptance, R11_2_AtTheLimitASendIsAnswered429) {
  gateway.Configure("r11_2", 2, 10);
  EXPECT_EQ(gateway.Send("r11_2").status, 200);
  EXPECT_EQ(gateway.Send("r11_2").status, 200);
  gateway.clock.Advance(minutes(1));
  const Response response = gateway.Send("r11_2");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(HeaderOf(response, "Retry-After"), "540");
  EXPECT_EQ(servers_->Hash("r11_2", "currentCount"), "2");
}

TEST_F(NotifyAcceptance, R11_3_AHashThatExpiredIsFilledAgain) {
  gateway.Configure("r11_3", 2, 10);
  EXPECT_EQ(gateway.SendMany("r11_3", 2), (std::map<int, int>{{200, 2}}));
  gateway.clock.Advance(minutes(10));
  servers_->redis.Command({"PEXPIRE", "RateLimiterCache:r11_3", "1"});
  ASSERT_TRUE(WaitUntil([&] {
    return servers_->Redis({"EXISTS", "RateLimiterCache:r11_3"}) == "0";
  }));
  EXPECT_EQ(gateway.SendMany("r11_3", 3), (std::map<int, int>{{200, 2}, {429, 1}}));
}

TEST_F(NotifyAcceptance, R11_4_TheTableLearnsTheCount) {
  gateway.Configure("r11_4", 50, 10);
  EXPECT_EQ(gateway.SendMany("r11_4", 33), (std::map<int, int>{{200, 33}}));
  EXPECT_TRUE(WaitForCount("r11_4", "33"));
  EXPECT_EQ(servers_->Hash("r11_4", "currentCount"), "33");
}

TEST_F(NotifyAcceptance, R11_6_OfTwoHundredForOnePlaceExactlyOneIsSent) {
  gateway.Configure("r11_6", 3, 10);
  EXPECT_EQ(gateway.SendMany("r11_6", 2), (std::map<int, int>{{200, 2}}));
  Gateways other(*servers_, Path::kRedis);
  ASSERT_TRUE(other.WaitForRedis(true));
  std::map<int, int> there;
  std::thread thread([&] { there = other.SendMany("r11_6", 100); });
  std::map<int, int> here = gateway.SendMany("r11_6", 100);
  thread.join();
  EXPECT_EQ(here[200] + there[200], 1);
  EXPECT_EQ(here[429] + there[429], 199);
  EXPECT_THAT(servers_->EventsOf("r11_6"), SizeIs(3));
}

TEST_F(NotifyAcceptance, R11_6_1_APlaceIsCountedBeforeTheBrokerHasSaidAnything) {
  gateway.Configure("r11_6_1", 2, 10);
  EXPECT_EQ(gateway.Send("r11_6_1").status, 200);
  ASSERT_TRUE(WaitForCount("r11_6_1", "1"));
  servers_->kafka.Kill();
  std::future<Response> send = gateway.StartSend("r11_6_1");
  EXPECT_TRUE(WaitUntil([&] { return servers_->Hash("r11_6_1", "currentCount") == "2"; }));
  const Response response = Gateways::Wait(std::move(send));
  servers_->kafka.Start();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("Kafka is temporarily unavailable"));
}

TEST_F(NotifyAcceptance, R11_6_2_WhatWasCountedForAFailedPublishStaysCounted) {
  gateway.Configure("r11_6_2", 2, 10);
  EXPECT_EQ(gateway.Send("r11_6_2").status, 200);
  ASSERT_TRUE(WaitForCount("r11_6_2", "1"));
  servers_->kafka.Kill();
  EXPECT_EQ(gateway.Send("r11_6_2").status, 503);
  servers_->kafka.Start();
  EXPECT_EQ(servers_->Hash("r11_6_2", "currentCount"), "2");
  EXPECT_EQ(gateway.Send("r11_6_2").status, 429);
}

TEST_F(NotifyAcceptance, R11_6_3_AFailedPublishGivesNothingBack) {
  gateway.Configure("r11_6_3", 1, 10);
  servers_->kafka.Kill();
  std::future<Response> send = gateway.StartSend("r11_6_3");
  ASSERT_TRUE(WaitUntil([&] { return servers_->Hash("r11_6_3", "currentCount") == "1"; }));
  // While the publish fails, and afterwards, no one else gets the place.
  EXPECT_EQ(gateway.SendMany("r11_6_3", 20), (std::map<int, int>{{429, 20}}));
  EXPECT_EQ(Gateways::Wait(std::move(send)).status, 503);
  servers_->kafka.Start();
  EXPECT_EQ(gateway.SendMany("r11_6_3", 20), (std::map<int, int>{{429, 20}}));
}

TEST_F(NotifyAcceptance, R11_6_4_AUserMayGetFewerThanTheLimitButNeverMore) {
  gateway.Configure("r11_6_4", 4, 10);
  EXPECT_EQ(gateway.Send("r11_6_4").status, 200);
  servers_->kafka.Kill();
  EXPECT_EQ(gateway.Send("r11_6_4").status, 503);
  servers_->kafka.Start();
  // One of four was lost with the broker, one was sent before: two are left.
  std::map<int, int> answers;
  EXPECT_TRUE(
      WaitUntil([&] { return ++answers[gateway.Send("r11_6_4").status], answers[429] > 0; }));
  EXPECT_LE(answers[200], 2);
  EXPECT_EQ(servers_->Hash("r11_6_4", "currentCount"), "4");
}

TEST_F(NotifyAcceptance, R13_1_ASendGoesThroughRealPostgresRedisAndKafka) {
  gateway.Configure("r13_1", 2, 10);
  EXPECT_EQ(gateway.Send("r13_1").status, 200);
  EXPECT_EQ(servers_->Hash("r13_1", "currentCount"), "1");
  EXPECT_TRUE(WaitForCount("r13_1", "1"));
  EXPECT_THAT(servers_->EventsOf("r13_1"), SizeIs(1));  // read back by kcat
}

TEST_F(NotifyAcceptance, R13_2_AfterTheLimitRedisAnswers429) {
  gateway.Configure("r13_2", 3, 10);
  EXPECT_EQ(gateway.SendMany("r13_2", 3), (std::map<int, int>{{200, 3}}));
  ASSERT_TRUE(WaitForCount("r13_2", "3"));
  servers_->postgres.Stop();  // so that Redis answers
  const std::map<int, int> answers = gateway.SendMany("r13_2", 2);
  servers_->postgres.Start();
  EXPECT_EQ(answers, (std::map<int, int>{{429, 2}}));
}

TEST_F(NotifyAcceptance, R13_3_AColdCacheIsFilledWithTheRightTimeToLive) {
  gateway.Configure("r13_3", 5, 30);
  gateway.clock.Advance(minutes(12));
  EXPECT_EQ(gateway.Send("r13_3").status, 200);
  EXPECT_EQ(servers_->Hash("r13_3", "rateLimit"), "5");
  EXPECT_THAT(servers_->Ttl("r13_3"), AllOf(Ge(1060), Le(1080)));  // (30 - 12) × 60
}

TEST_F(NotifyAcceptance, R13_4_RedisThatStandsStillIsReplacedByPostgresAndReturns) {
  gateway.Configure("r13_4", 10, 10);
  EXPECT_EQ(gateway.SendMany("r13_4", 3), (std::map<int, int>{{200, 3}}));
  servers_->redis.Pause();
  EXPECT_EQ(gateway.SendMany("r13_4", 4), (std::map<int, int>{{200, 4}}));
  EXPECT_EQ(servers_->CountOf("r13_4"), "7");
  servers_->redis.Resume();
  ASSERT_TRUE(gateway.WaitForRedis(true));
  // Redis had counted 3 (or 7, with those that reached it before it was suspended); 7 were sent.
  EXPECT_EQ(gateway.SendMany("r13_4", 4), (std::map<int, int>{{200, 3}, {429, 1}}));
  EXPECT_THAT(servers_->EventsOf("r13_4"), SizeIs(10));
}

TEST_F(NotifyAcceptance, ALimitThatIsTakenAwayIsGoneFromTheTableAndFromRedis) {
  ASSERT_TRUE(gateway.WaitForRedis(true));
  ASSERT_EQ(gateway.Configure("taken", 5, 10).status, 200);
  ASSERT_EQ(gateway.Send("taken").status, 200);  // fills the hash
  EXPECT_TRUE(gateway.Remove("taken").ok());
  EXPECT_EQ(gateway.Send("taken").status, 404);
  EXPECT_EQ(gateway.Call("GET", "/api/config/taken").status, 404);
}

TEST_F(NotifyAcceptance, ARepeatedKeyIsAnsweredAsTheFirstAlsoWhenRedisGoesAndComes) {
  gateway.Configure("rkeys", 5, 10);
  const Response first = gateway.Send("rkeys", "m", "k1");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(gateway.Send("rkeys", "m", "k1").body, first.body);
  EXPECT_EQ(gateway.Send("rkeys", "other", "k1").status, 400);
  std::vector<std::future<Response>> sends;
  for (int i = 0; i < 30; ++i) sends.push_back(gateway.StartSend("rkeys", "m", "k2"));
  for (auto& send : sends) EXPECT_EQ(Gateways::Wait(std::move(send)).status, 200);
  ASSERT_TRUE(WaitForCount("rkeys", "2"));
  servers_->redis.Kill();
  EXPECT_EQ(gateway.Send("rkeys", "m", "k1").body, first.body);
  const Response meanwhile = gateway.Send("rkeys", "m", "k3");
  EXPECT_EQ(meanwhile.status, 200);
  servers_->redis.Start();
  ASSERT_TRUE(gateway.WaitForRedis(true));
  EXPECT_EQ(gateway.Send("rkeys", "m", "k3").body, meanwhile.body);
  EXPECT_EQ(gateway.Send("rkeys", "m", "k1").body, first.body);
  EXPECT_EQ(servers_->CountOf("rkeys"), "3");
  EXPECT_THAT(servers_->EventsOf("rkeys"), SizeIs(3));
}

}  // namespace
}  // namespace weir::notify::test
