// Servers and the gateway are killed or stopped under load. Whatever happens: every 200 is in the
// topic, read back by kcat; no user gets more than the cap; every other answer is 429 or 503.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "load.h"
#include "support/kafka_server.h"
#include "support/ports.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTopic = "sms-outbound";

class NotifyFaults : public testing::Test {
 protected:
  void Start() {
    std::vector<std::string> args = {"serve",
                                     "--http",
                                     "127.0.0.1:" + std::to_string(port_),
                                     "--grpc",
                                     "off",
                                     "--resp",
                                     "off",
                                     "--data",
                                     dir_ / "data",
                                     "--notify-store",
                                     postgres_.url(),
                                     "--notify-broker",
                                     kafka_.url()};
    if (redis_) args.insert(args.end(), {"--notify-cache", redis_->url()});
    gateway_ = std::make_unique<WeirProcess>(args);
    ASSERT_EQ(gateway_->Port("http"), port_);
  }
  void UseRedis() { redis_ = std::make_unique<RedisServer>(); }
  void Begin() {
    Start();
    NotifyLoad::Configure(port_);
    load_ = std::make_unique<NotifyLoad>(port_);
    ASSERT_TRUE(load_->WaitForMore(200, 100)) << gateway_->process().error_output();
  }
  /// Sends succeed again, and every earlier answer was correct.
  void Judge() {
    EXPECT_TRUE(load_->WaitForMore(200, 100)) << gateway_->process().error_output();
    EXPECT_TRUE(load_->WaitForMore(429, 20)) << "nobody has reached a cap";
    load_->Stop();
    EXPECT_THAT(load_->Complaints(kafka_.Read(kTopic)), IsEmpty());
  }

  const TempDir dir_;
  const std::uint16_t port_ = FreePort();
  PostgresServer postgres_;
  KafkaServer kafka_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<WeirProcess> gateway_;
  std::unique_ptr<NotifyLoad> load_;
};

TEST_F(NotifyFaults, KafkaIsKilledAndComesBackOnThePostgresPath) {
  Begin();
  kafka_.Kill();
  EXPECT_TRUE(load_->WaitForMore(503, 10));
  kafka_.Start();
  Judge();
}

TEST_F(NotifyFaults, KafkaIsKilledAndComesBackOnTheRedisPath) {
  UseRedis();
  Begin();
  kafka_.Kill();
  EXPECT_TRUE(load_->WaitForMore(503, 10));
  kafka_.Start();
  Judge();
}

TEST_F(NotifyFaults, PostgresIsCrashedAndComesBack) {
  Begin();
  postgres_.Crash();
  EXPECT_TRUE(load_->WaitForMore(503, 10));
  postgres_.Start();
  Judge();
}

TEST_F(NotifyFaults, PostgresIsCrashedAndComesBackBehindRedis) {
  UseRedis();
  Begin();
  postgres_.Crash();
  std::this_thread::sleep_for(seconds(2));  // how long it is down; nothing is awaited
  postgres_.Start();
  Judge();
}

TEST_F(NotifyFaults, RedisStandsStillForTenSeconds) {
  UseRedis();
  Begin();
  redis_->Pause();
  EXPECT_TRUE(gateway_->process().WaitForError("REDIS DOWN"));
  EXPECT_TRUE(load_->WaitForMore(200, 50)) << "nothing goes through without Redis";
  std::this_thread::sleep_for(seconds(10));  // how long it hangs; nothing is awaited
  redis_->Resume();
  Judge();
}

TEST_F(NotifyFaults, TheGatewayIsKilledAgainAndAgain) {
  Begin();
  for (int kill = 0; kill < 3; ++kill) {
    gateway_->process().Kill();
    Start();
    EXPECT_TRUE(load_->WaitForMore(200, 50)) << gateway_->process().error_output();
  }
  Judge();
}

// With the broker suspended, events are in flight and rows are locked when the gateway is
// killed; the broker then writes the events, but no one commits.
TEST_F(NotifyFaults, TheGatewayIsKilledBetweenPublishAndCommit) {
  Begin();
  kafka_.Pause();
  // More bytes than a client with nothing to publish sends: a batch has reached the broker.
  EXPECT_TRUE(WaitUntil([this] { return kafka_.Unread() > 300; })) << "nothing is sent to it";
  gateway_->process().Kill();
  kafka_.Resume();
  Start();
  Judge();
  EXPECT_GT(static_cast<int>(kafka_.Read(kTopic).size()), load_->count(200))
      << "no event was published without being answered: the kill came at another moment";
}

}  // namespace
}  // namespace weir::test
