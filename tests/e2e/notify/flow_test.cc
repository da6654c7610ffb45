// End to end with the real programs and servers: configure → send up to the limit → 429 → the
// window passes → 200; and the sender prints exactly what was accepted. The shortest window is a
// minute, so here time passes by moving the window in the table a minute back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/kafka_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::notify {
namespace {

using std::chrono::seconds;
using test::HttpClient;
using test::HttpResponse;
using test::KafkaServer;
using test::PostgresServer;
using test::RedisServer;
using test::TempDir;
using test::WeirProcess;
using testing::HasSubstr;

std::multiset<std::string> Printed(WeirProcess& sender) {
  std::multiset<std::string> messages;
  std::istringstream all(sender.process().output());
  for (std::string line; std::getline(all, line);) {
    constexpr std::string_view kMark = "message=\"";
    if (!line.starts_with("SMS SENT")) continue;
    const std::size_t start = line.find(kMark) + kMark.size();
    messages.insert(line.substr(start, line.find('"', start) - start));
  }
  return messages;
}

HttpResponse Send(HttpClient& client, const std::string& user, const std::string& message) {
  return client.Post("/api/send", R"({"userId":")" + user + R"(","message":")" + message + "\"}");
}

class NotifyFlow : public testing::TestWithParam<bool> {
 protected:
  std::vector<std::string> ServeArgs() const {
    std::vector<std::string> args = {"serve",
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
                                     kafka_.url()};
    if (redis_) args.insert(args.end(), {"--notify-cache", redis_->url()});
    return args;
  }
  std::string Count() { return postgres_.Query("SELECT current_count FROM rate_limit_store"); }
  void PassAMinute() {
    postgres_.Query(
        "UPDATE rate_limit_store SET last_refresh_time = last_refresh_time - interval '1 minute'");
    // As Redis does when the time to live has passed.
    if (redis_) redis_->Command({"DEL", "RateLimiterCache:42"});
  }

  const TempDir dir_;
  PostgresServer postgres_;
  KafkaServer kafka_;
  std::unique_ptr<RedisServer> redis_ = GetParam() ? std::make_unique<RedisServer>() : nullptr;
};

// Requirements 8 (without Redis) and 13 (with Redis), criteria 1 to 3.
TEST_P(NotifyFlow, ConfigureSendLimitedWindowPassesSendAndTheSenderPrintsWhatWasAccepted) {
  WeirProcess gateway(ServeArgs());
  WeirProcess sender({"sender", "--broker", kafka_.url(), "--data", dir_ / "sender"});
  HttpClient client(gateway.Port("http"));

  const HttpResponse configured =
      client.Post("/api/config", R"({"userId":"42","rateLimit":3,"timeWindow":1})");
  ASSERT_EQ(configured.status, 200) << configured.body << gateway.process().error_output();
  EXPECT_EQ(Count(), "0");

  std::multiset<std::string> accepted;
  for (int i = 0; i < 6; ++i) {
    const std::string message = "first-" + std::to_string(i);
    const HttpResponse answer = Send(client, "42", message);
    EXPECT_EQ(answer.status, i < 3 ? 200 : 429) << answer.body;
    if (answer.status == 200) accepted.insert(message);
    if (answer.status != 429) continue;
    const int retry = std::stoi(std::string(answer.Header("Retry-After")));
    EXPECT_GE(retry, 1);
    EXPECT_LE(retry, 60);
  }
  if (redis_) {
    EXPECT_THAT(redis_->Command({"HGET", "RateLimiterCache:42", "currentCount"}), HasSubstr("3"));
  }
  EXPECT_TRUE(test::WaitUntil([this] { return Count() == "3"; }));

  PassAMinute();
  for (int i = 0; i < 4; ++i) {
    const std::string message = "second-" + std::to_string(i);
    const HttpResponse answer = Send(client, "42", message);
    EXPECT_EQ(answer.status, i < 3 ? 200 : 429) << answer.body;
    if (answer.status == 200) accepted.insert(message);
  }
  EXPECT_EQ(Send(client, "nobody", "x").status, 404);

  EXPECT_EQ(accepted.size(), 6);
  EXPECT_TRUE(test::WaitUntil([&] { return Printed(sender).size() >= 6; }))
      << sender.process().error_output();
  EXPECT_EQ(sender.process().Terminate(), 0);
  EXPECT_EQ(Printed(sender), accepted);
  EXPECT_EQ(gateway.process().Terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(Paths, NotifyFlow, testing::Bool(),
                         [](const auto& path) { return path.param ? "Redis" : "Postgres"; });

}  // namespace
}  // namespace weir::notify
