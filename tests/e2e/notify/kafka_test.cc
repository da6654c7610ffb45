// The gateway and the sender as programs on PostgreSQL, Kafka and a mail server: channels,
// preferences, dead letters, the sender's metrics, and a database outage. The embedded mode has the
// same tests in tests/unit/notify/sqlite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/http_client.h"
#include "support/kafka_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

std::string FieldOf(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\":\"";
  const std::size_t start = json.find(mark);
  if (start == std::string::npos) return {};
  return json.substr(start + mark.size(),
                     json.find('"', start + mark.size()) - start - mark.size());
}

/// "HH:00" this many hours from now, UTC.
std::string HourFromNow(int hours) {
  const std::time_t at = std::time(nullptr) + hours * 3'600;
  std::tm parts{};
  gmtime_r(&at, &parts);
  return (parts.tm_hour < 10 ? "0" : "") + std::to_string(parts.tm_hour) + ":00";
}

class NotifyOnKafka : public testing::TestWithParam<bool> {
 protected:
  NotifyOnKafka() {
    if (!mail_.WaitForLine("ready")) throw std::runtime_error(mail_.error_output());
    std::vector<std::string> words = {"serve",
                                      "--http",
                                      "127.0.0.1:0",
                                      "--grpc",
                                      "off",
                                      "--resp",
                                      "off",
                                      "--data",
                                      dir_ / "gateway",
                                      "--notify-store",
                                      postgres_.url(),
                                      "--notify-broker",
                                      kafka_.url(),
                                      "--log-level",
                                      "debug"};
    if (GetParam()) {
      redis_ = std::make_unique<RedisServer>();
      words.insert(words.end(), {"--notify-cache", redis_->url()});
    }
    gateway_.emplace(words, SpawnOptions{.env = {"WEIR_NOTIFY_DEFAULT_CAP=5/60m"}});
    sender_.emplace(std::vector<std::string>{
        "sender", "--broker", kafka_.url(), "--data", dir_ / "sender", "--store", postgres_.url(),
        "--provider", "sms=console:", "--provider",
        "email=smtp://127.0.0.1:" + std::to_string(mail_port_) + "/?from=weir@example.com",
        "--metrics", "127.0.0.1:0"});
    http_.emplace(gateway_->Port("http"));
  }

  /// Sends a message; returns its id.
  std::string Send(const std::string& user, const std::string& channel, const std::string& to) {
    const std::string recipient = to.empty() ? "" : R"(,"recipient":")" + to + "\"";
    const HttpResponse sent =
        http_->Post("/api/send", R"({"userId":")" + user + R"(","message":"sesame","channel":")" +
                                     channel + "\"" + recipient + "}");
    EXPECT_EQ(sent.status, 200) << sent.body;
    return FieldOf(sent.body, "eventId");
  }
  void Wish(const std::string& user, const std::string& body) {
    const HttpResponse kept = http_->Send("PUT", "/api/preferences/" + user, body);
    EXPECT_EQ(kept.status, 200) << kept.body;
  }
  std::string Message(const std::string& id) { return http_->Get("/api/messages/" + id).body; }
  bool WaitForState(const std::string& id, const std::string& state) {
    return WaitUntil([&] { return FieldOf(Message(id), "state") == state; });
  }

  const TempDir dir_;
  const std::uint16_t mail_port_ = FreePort();
  ChildProcess mail_{std::vector<std::string>{
      "/usr/bin/python3", SourcePath("tests/support/smtp/server.py"), std::to_string(mail_port_)}};
  PostgresServer postgres_;
  KafkaServer kafka_;
  std::unique_ptr<RedisServer> redis_;
  std::optional<WeirProcess> gateway_;
  std::optional<WeirProcess> sender_;
  std::optional<HttpClient> http_;
};

TEST_P(NotifyOnKafka, ChannelsWishesAndDeadLettersAsEmbedded) {
  // ann is not configured: the first message gives her the default cap, five an hour.
  const std::string sms = Send("ann", "sms", "");
  const std::string mail = Send("ann", "email", "ann@example.com");
  const std::string gone = Send("ann", "email", "ann@gone.test");
  Wish("ann", R"({"optOut":["push"]})");
  const std::string push = Send("ann", "push", "");
  ASSERT_TRUE(WaitForState(sms, "SENT")) << sender_->process().error_output();
  EXPECT_TRUE(sender_->process().WaitForLine("SMS SENT userId=\"ann\" message=\"sesame\""));
  ASSERT_TRUE(WaitForState(mail, "SENT"));
  EXPECT_THAT(mail_.WaitForLine(mail), Optional(AllOf(HasSubstr(R"("to": ["ann@example.com"])"),
                                                      HasSubstr(R"("text": "sesame)"))));
  ASSERT_TRUE(WaitForState(push, "DROPPED"));
  EXPECT_THAT(Message(push), HasSubstr("opted out"));

  ASSERT_TRUE(WaitForState(gone, "DEAD"));
  EXPECT_THAT(Message(gone), AllOf(HasSubstr("the mail server answered 550"),
                                   HasSubstr(R"("recipient":"ann@gone.test")")));
  EXPECT_THAT(http_->Get("/admin/notify/dead?userId=ann").body,
              AllOf(HasSubstr(gone), Not(HasSubstr("sesame"))));
  EXPECT_THAT(http_->Get("/admin/notify/dead/" + gone).body, HasSubstr("sesame"));
  EXPECT_THAT(http_->Post("/admin/notify/dead/replay", R"({"userId":"ann"})").body,
              HasSubstr("\"replayed\":1"));
  ASSERT_TRUE(WaitUntil([&] {
    return http_->Get("/admin/notify/dead").body.find(gone) != std::string::npos;
  })) << "the mailbox is still not there";
  EXPECT_THAT(http_->Post("/admin/notify/dead/drop", R"({"eventIds":[")" + gone + "\"]}").body,
              HasSubstr("\"dropped\":1"));
  EXPECT_TRUE(WaitForState(gone, "DROPPED"));

  const std::string morning = HourFromNow(2);
  Wish("ann", R"({"quietHours":{"from":")" + HourFromNow(-1) + R"(","to":")" + morning +
                  R"(","zone":"UTC"}})");
  const std::string night = Send("ann", "email", "night@example.com");
  ASSERT_TRUE(WaitUntil([&] { return !FieldOf(Message(night), "notBefore").empty(); }));
  EXPECT_EQ(FieldOf(Message(night), "state"), "QUEUED");
  EXPECT_THAT(FieldOf(Message(night), "notBefore"), HasSubstr("T" + morning + ":00"));
  EXPECT_EQ(http_->Post("/api/send", R"({"userId":"ann","message":"sesame"})").status, 429);
  // The quiet hours end.
  Wish("ann", "{}");
  postgres_.Query("UPDATE notify_delayed SET not_before = 1");
  ASSERT_TRUE(WaitForState(night, "SENT"));
  EXPECT_TRUE(mail_.WaitForLine(night));

  const std::uint16_t metrics = sender_->Port("metrics");
  for (const std::string line :
       {"weir_notify_deliveries_total{result=\"delivered\"} 3\n",
        "weir_notify_deliveries_total{result=\"dead\"} 2\n",
        "weir_notify_deliveries_total{result=\"dropped\"} 1\n",
        "weir_notify_deliveries_total{result=\"delayed\"} 1\n", "weir_notify_retries_total 0\n",
        "weir_notify_delivery_seconds_count 3\n", "weir_notify_lag 0\n",
        "weir_notify_store_up 1\n"}) {
    EXPECT_TRUE(WaitUntil([&] {
      return HttpClient(metrics).Get("/metrics").body.find(line) != std::string::npos;
    })) << line;
  }
  // What the dashboard shows: the gateway reads it from the reports of senders.
  const auto gateway_says = [&](const std::string& text) {
    return WaitUntil(
        [&] { return http_->Get("/admin/notify").body.find(text) != std::string::npos; },
        seconds(30));
  };
  EXPECT_TRUE(gateway_says(R"("queue":0,"deadLetters":0,"delivered":3,"retries":0,)"))
      << http_->Get("/admin/notify").body;
  EXPECT_TRUE(gateway_says(R"("senders":1})")) << http_->Get("/admin/notify").body;
  EXPECT_THAT(http_->Get("/metrics").body, HasSubstr("weir_notify_senders 1\n"));
  EXPECT_EQ(sender_->process().Terminate(), 0);
  // The sender has left: its counts stay, and the queue's length is unknown.
  EXPECT_TRUE(gateway_says(R"("queue":null,"deadLetters":0,"delivered":3,"retries":0,)"))
      << http_->Get("/admin/notify").body;
  EXPECT_TRUE(gateway_says(R"("senders":0})")) << http_->Get("/admin/notify").body;
  EXPECT_THAT(sender_->process().error_output(),
              AllOf(HasSubstr("message cannot be delivered"), Not(HasSubstr("sesame"))));
  EXPECT_EQ(gateway_->process().Terminate(), 0);
  EXPECT_THAT(gateway_->process().error_output(), Not(HasSubstr("sesame")));
}

TEST_P(NotifyOnKafka, ReadyzNamesTheDatabaseAndStaysReady) {
  if (GetParam()) GTEST_SKIP() << "the same with Redis in front";
  const auto says = [&](const std::string& text) {
    return WaitUntil([&] {
      const HttpResponse answer = http_->Get("/readyz");
      return answer.status == 200 && answer.body == text;
    });
  };
  EXPECT_TRUE(says("ready\n"));
  postgres_.Crash();
  EXPECT_TRUE(says("ready, degraded: the database of notify is down\n"));
  postgres_.Start();
  EXPECT_TRUE(says("ready\n"));
}

INSTANTIATE_TEST_SUITE_P(Paths, NotifyOnKafka, testing::Bool(),
                         [](const auto& path) { return path.param ? "Redis" : "Postgres"; });

}  // namespace
}  // namespace weir::test
