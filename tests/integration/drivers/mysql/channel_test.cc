#include "drivers/mysql/channel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "store/guard/herald.h"
#include "support/mariadb_server.h"
#include "support/wait.h"

namespace weir::mysql {
namespace {

using namespace std::chrono_literals;

/// A separate database per test, on a server that all share.
class MysqlChannelTest : public ::testing::Test {
 protected:
  MysqlChannelTest() {
    static int number = 0;
    database_ = "channel" + std::to_string(++number);
    url_ = Server().CreateDatabase(database_);
  }

  static test::MariadbServer& Server() {
    static test::MariadbServer server;
    return server;
  }
  int Count(const std::string& where = "TRUE") {
    return std::stoi(
        Server().Query("SELECT COUNT(*) FROM weir_messages WHERE " + where, database_));
  }
  Channel::Callbacks Counting() {
    return {.message = [this](std::string_view) { ++heard_; },
            .changed = [this](bool up) { up_ = up; }};
  }

  std::string database_;
  std::string url_;
  std::atomic<int> heard_{0};
  std::atomic<bool> up_{false};
};

TEST_F(MysqlChannelTest, MessagesArrive) {
  const auto one = OpenChannel(url_, "c", Counting());
  ASSERT_TRUE(test::WaitUntil([this] { return up_.load(); }));
  one->Publish("hello");
  EXPECT_TRUE(test::WaitUntil([this] { return heard_ == 1; }));
}

TEST_F(MysqlChannelTest, OldMessagesAreDeletedHoweverManyThereAre) {
  {
    const auto first = OpenChannel(url_, "c", Counting());
    ASSERT_TRUE(test::WaitUntil([this] { return up_.load(); }));
  }
  Server().Query(
      "INSERT INTO weir_messages(channel, body, at) "
      "SELECT 'c', 'x', NOW() - INTERVAL 2 MINUTE FROM seq_1_to_10000",
      database_);
  ASSERT_EQ(Count(), 10000);
  up_ = false;
  const auto next = OpenChannel(url_, "c", Counting());
  EXPECT_TRUE(test::WaitUntil([this] { return Count() == 0; })) << Count();
}

// A second of 20,000 refunds of different keys by one node.
TEST_F(MysqlChannelTest, AFloodOfRefundsIsFewRows) {
  const auto channel = OpenChannel(url_, "c", Counting());
  ASSERT_TRUE(test::WaitUntil([this] { return up_.load(); }));
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t hash = 0;
  {
    store::guard::Herald herald(
        200ms, [&channel](std::string text) { channel->Publish(std::move(text)); });
    for (; hash < 20'000 && std::chrono::steady_clock::now() - began < 5s; ++hash) {
      herald.Tell({&hash, 1});
      std::this_thread::sleep_until(began + hash * 50us);
    }
    // The last of them are sent an interval later.
    std::this_thread::sleep_for(300ms);
  }
  const auto intervals = (std::chrono::steady_clock::now() - began) / 200ms + 1;
  ASSERT_TRUE(test::WaitUntil([this] { return Count() > 0; }));
  // Full rows of 256, and one partial row for each interval.
  EXPECT_LE(Count(), static_cast<int>(hash / 256 + static_cast<std::uint64_t>(intervals)));
  EXPECT_TRUE(test::WaitUntil([this] { return heard_ == Count(); }));
}

}  // namespace
}  // namespace weir::mysql
