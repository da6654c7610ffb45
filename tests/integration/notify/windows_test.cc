// 50 users with a limit of 20 over three windows: exactly 20 each in every window, on both paths,
// and never more while Redis is killed and restarted.

#include <atomic>

#include "integration/notify/fixture.h"

namespace weir::notify::test {
namespace {

constexpr int kUsers = 50;
constexpr int kLimit = 20;
constexpr int kWindows = 3;

class NotifyWindows : public ServersTest {
 protected:
  static std::string User(const std::string& prefix, int i) { return prefix + std::to_string(i); }

  static void ConfigureAll(Gateways& gateway, const std::string& prefix) {
    for (int i = 0; i < kUsers; ++i) {
      ASSERT_EQ(gateway.Configure(User(prefix, i), kLimit, 1).status, 200);
    }
  }

  /// `each` sends for every user, all concurrently; returns how many of each user were sent.
  static std::map<std::string, int> SendAll(Gateways& gateway, const std::string& prefix, int each,
                                            std::map<int, int>& statuses) {
    std::vector<std::pair<std::string, std::future<Response>>> sends;
    for (int n = 0; n < each; ++n) {
      for (int i = 0; i < kUsers; ++i) {
        const std::string user = User(prefix, i);
        sends.emplace_back(user, gateway.StartSend(user));
      }
    }
    std::map<std::string, int> sent;
    for (auto& [user, send] : sends) {
      const int status = Gateways::Wait(std::move(send)).status;
      ++statuses[status];
      sent[user] += status == 200 ? 1 : 0;
    }
    return sent;
  }

  static std::map<std::string, int> EventsByUser() {
    std::map<std::string, int> events;
    for (const auto& message : servers_->kafka.Read(std::string(kTopic))) ++events[message.key];
    return events;
  }
};

TEST_F(NotifyWindows, ExactlyTheLimitInEveryWindowOnPostgres) {
  Gateways gateway(*servers_, Path::kPostgres);
  ConfigureAll(gateway, "p");
  for (int window = 0; window < kWindows; ++window) {
    std::map<int, int> statuses;
    for (const auto& [user, sent] : SendAll(gateway, "p", kLimit + 10, statuses)) {
      EXPECT_EQ(sent, kLimit) << user << " in window " << window;
    }
    EXPECT_EQ(statuses, (std::map<int, int>{{200, kUsers * kLimit}, {429, kUsers * 10}}));
    gateway.clock.Advance(std::chrono::minutes(1));
  }
  std::map<std::string, int> events = EventsByUser();
  for (int i = 0; i < kUsers; ++i) EXPECT_EQ(events[User("p", i)], kLimit * kWindows);
}

TEST_F(NotifyWindows, ExactlyTheLimitInEveryWindowOnRedis) {
  Gateways gateway(*servers_, Path::kRedis);
  ASSERT_TRUE(gateway.WaitForRedis(true));
  ConfigureAll(gateway, "r");
  for (int window = 0; window < kWindows; ++window) {
    std::map<int, int> statuses;
    for (const auto& [user, sent] : SendAll(gateway, "r", kLimit + 10, statuses)) {
      EXPECT_EQ(sent, kLimit) << user << " in window " << window;
    }
    EXPECT_EQ(statuses, (std::map<int, int>{{200, kUsers * kLimit}, {429, kUsers * 10}}));
    gateway.clock.Advance(std::chrono::minutes(1));
  }
  std::map<std::string, int> events = EventsByUser();
  for (int i = 0; i < kUsers; ++i) EXPECT_EQ(events[User("r", i)], kLimit * kWindows);
}

TEST_F(NotifyWindows, NeverMoreThanTheLimitWhileRedisIsKilledAndComesBack) {
  Gateways gateway(*servers_, Path::kRedis);
  ASSERT_TRUE(gateway.WaitForRedis(true));
  ConfigureAll(gateway, "k");
  std::map<std::string, int> all;
  for (int window = 0; window < kWindows; ++window) {
    std::map<std::string, int> in_window;
    std::map<int, int> statuses;
    // Killed and restarted while requests are under way.
    std::atomic<bool> done{false};
    std::atomic<int> rounds{0};
    std::thread sender([&] {
      while (!done) {
        for (const auto& [user, sent] : SendAll(gateway, "k", 1, statuses)) in_window[user] += sent;
        ++rounds;
      }
    });
    ASSERT_TRUE(weir::test::WaitUntil([&] { return rounds > 0; }));
    servers_->redis.Kill();
    EXPECT_TRUE(gateway.WaitForRedis(false));
    servers_->redis.Start();
    EXPECT_TRUE(gateway.WaitForRedis(true));
    done = true;
    sender.join();
    // The rest of the window.
    for (const auto& [user, sent] : SendAll(gateway, "k", kLimit + 1, statuses)) {
      in_window[user] += sent;
    }
    for (const auto& [user, sent] : in_window) {
      EXPECT_EQ(sent, kLimit) << user << " in window " << window;
      all[user] += sent;
    }
    for (const auto& [status, count] : statuses) {
      EXPECT_TRUE(status == 200 || status == 429 || status == 503) << status;
    }
    gateway.clock.Advance(std::chrono::minutes(1));
  }
  // Every answer 200 has an event, and every event has one.
  std::map<std::string, int> events = EventsByUser();
  for (const auto& [user, sent] : all) EXPECT_EQ(events[user], sent) << user;
}

TEST_F(NotifyWindows, TwoGatewaysThatDisagreeAboutRedisGrantAtMostTwiceTheLimit) {
  Gateways with(*servers_, Path::kRedis);
  Gateways without(*servers_, Path::kPostgres);  // like one that cannot reach Redis
  ASSERT_TRUE(with.WaitForRedis(true));
  ASSERT_EQ(with.Configure("two", kLimit, 1).status, 200);
  // The hash is created before the other gateway counts in the table.
  ASSERT_EQ(with.Send("two").status, 200);
  ASSERT_TRUE(weir::test::WaitUntil([&] { return servers_->CountOf("two") == "1"; }));
  std::map<int, int> there = without.SendMany("two", kLimit * 2);
  std::map<int, int> here = with.SendMany("two", kLimit * 2);
  EXPECT_EQ(there[200], kLimit - 1);  // the table had the first
  EXPECT_EQ(here[200], kLimit - 1);   // Redis has only its own
  EXPECT_LE(1 + here[200] + there[200], 2 * kLimit);
  // In the next window they agree again through the table.
  with.clock.Advance(std::chrono::minutes(1));
  EXPECT_EQ(with.SendMany("two", kLimit + 5)[200], kLimit);
}

// The counts of days must not pile up in memory.
TEST_F(NotifyWindows, SendsAreRefusedWhenTooManyAreNotInTheTable) {
  Gateways bounded(*servers_, Path::kRedis, {.max_unsynced = 3});
  ASSERT_TRUE(bounded.WaitForRedis(true));
  bounded.Configure("behind", 1, 10);
  ASSERT_EQ(bounded.Send("behind").status, 200);
  // A hash is not filled before the gateway knows that the table has all of the user's sends.
  servers_->redis.Command({"DEL", "RateLimiterCache:behind"});
  ASSERT_EQ(bounded.Send("behind").status, 429);
  servers_->redis.Command({"HSET", "RateLimiterCache:behind", "rateLimit", "100"});
  servers_->postgres.Pause();
  std::map<int, int> statuses;
  Response last;
  for (int i = 0; i < 5; ++i) ++statuses[(last = bounded.Send("behind")).status];
  servers_->postgres.Resume();
  EXPECT_EQ(statuses, (std::map<int, int>{{200, 3}, {503, 2}}));
  EXPECT_THAT(last.body, testing::HasSubstr("too many sends are not written there yet"));
  EXPECT_TRUE(weir::test::WaitUntil([] { return servers_->CountOf("behind") == "4"; }));
  EXPECT_TRUE(weir::test::WaitUntil([&] { return bounded.Send("behind").status == 200; }));
}

}  // namespace
}  // namespace weir::notify::test
