#include "weir/shared_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/and_mysql.h"
#include "support/child_process.h"
#include "support/mariadb_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/postgres_server.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/stopwatch.h"
#include "support/store_server.h"
#include "support/wait.h"
#include "telemetry/log.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using test::StoreServer;
using test::WaitUntil;
using ::testing::HasSubstr;
using ::testing::Not;

/// Long enough for a busy machine, where no check may be left undecided.
const SharedLimiterOptions kPatient{.timeout = 5s};

/// One server of each kind for all tests.
class SharedLimiterTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { servers_.clear(); }

  StoreServer& server() {
    std::unique_ptr<StoreServer>& server = servers_[GetParam()];
    if (server == nullptr) server = StoreServer::Make(GetParam());
    return *server;
  }
  SharedLimiter Open(const SharedLimiterOptions& options = kPatient) {
    auto limiter = SharedLimiter::Open(server().url(), options);
    EXPECT_TRUE(limiter.ok()) << limiter.error().message;
    return std::move(*limiter);
  }

  static inline std::map<std::string, std::unique_ptr<StoreServer>> servers_;
};

TEST_P(SharedLimiterTest, DoesAllThatAnEngineDoes) {
  SharedLimiter limiter = Open();
  const Quota five = *Quota::FixedWindow(5, 24h * 3650);
  const Result<Decision> first = limiter.TryAcquire("all", five, 3);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_TRUE(first->allowed());
  EXPECT_EQ(first->limit, 5);
  EXPECT_EQ(first->remaining, 2);
  EXPECT_EQ(limiter.TryAcquire("all", five, 3)->verdict, Verdict::kLimited);
  EXPECT_EQ(limiter.TryAcquire("all", five, 6)->verdict, Verdict::kNever);
  EXPECT_EQ(limiter.TryAcquire("all", five, INT64_MAX)->verdict, Verdict::kNever);
  EXPECT_EQ(limiter.TryAcquire("all", five, -1).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(limiter.Peek("all", five, 2)->allowed());
  EXPECT_FALSE(limiter.Peek("all", five, 3)->allowed());
  EXPECT_EQ(limiter.Refund("all", five, 1)->remaining, 3);
  EXPECT_TRUE(limiter.Reset("all").ok());
  EXPECT_EQ(limiter.Peek("all", five)->remaining, 5);

  const Quota two = *Quota::Concurrency(2, 1h);
  const std::int64_t lease = limiter.TryAcquire("jobs", two)->lease;
  EXPECT_NE(lease, 0);
  EXPECT_EQ(*limiter.Release("jobs", two, lease), true);
  EXPECT_EQ(*limiter.Release("jobs", two, lease), false);

  const Quota budget = *Quota::FixedWindow(1000, 24h * 3650);
  const Result<SharedReservation> reserved = limiter.Reserve("budget", budget, 400);
  ASSERT_TRUE(reserved.ok()) << reserved.error().message;
  EXPECT_EQ(reserved->decision.remaining, 600);
  SharedLimiter elsewhere = Open();
  const Result<SharedSettlement> settled = elsewhere.Settle(reserved->reservation, 150);
  ASSERT_TRUE(settled.ok()) << settled.error().message;
  EXPECT_TRUE(settled->settled);
  EXPECT_EQ(settled->standing.remaining, 850);
  EXPECT_FALSE(limiter.Settle(reserved->reservation, 0)->settled);
  EXPECT_TRUE(limiter.Reserve("budget", budget, 900)->reservation.empty());
  EXPECT_EQ(limiter.Settle("x", 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Reserve("budget", budget, 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Reserve("budget", budget, 1, 25h).error().code, Code::kInvalidArgument);

  // Counts whether it fits or not; nothing fits while there is a debt.
  EXPECT_EQ(limiter.Overdraw("spent", five, 3)->remaining, 2);
  EXPECT_EQ(limiter.Overdraw("spent", five, 4)->verdict, Verdict::kLimited);
  EXPECT_FALSE(elsewhere.Overdraw("spent", five, 0)->allowed());
  EXPECT_TRUE(limiter.Refund("spent", five, 2).ok());
  EXPECT_TRUE(elsewhere.Overdraw("spent", five, 0)->allowed());

  const Ask both[] = {{.key = "a", .cost = 2, .quota = &five},
                      {.key = "b", .cost = 3, .quota = &five}};
  const Result<SharedDecisions> granted = limiter.TryAcquireAll(both);
  ASSERT_TRUE(granted.ok()) << granted.error().message;
  EXPECT_TRUE(granted->granted);
  EXPECT_EQ(granted->decisions.at(0).remaining, 3);
  EXPECT_EQ(granted->decisions.at(1).remaining, 2);
  const Result<SharedDecisions> refused = limiter.TryAcquireAll(both);  // b has 2 of 3
  EXPECT_FALSE(refused->granted);
  EXPECT_TRUE(refused->decisions.at(0).allowed());
  EXPECT_FALSE(refused->decisions.at(1).allowed());
  EXPECT_EQ(limiter.Peek("a", five)->remaining, 3);
  EXPECT_TRUE(limiter.health().ok());
}

TEST_P(SharedLimiterTest, ManyThreadsOfTwoLimitersGetExactlyTheLimit) {
  SharedLimiter one = Open();
  SharedLimiter two = Open();
  const Quota quota = *Quota::SlidingLog(500, 24h);
  std::atomic<int> granted = 0;
  std::atomic<int> undecided = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto decision = (t % 2 == 0 ? one : two).TryAcquire("hot", quota);
        if (!decision.ok()) ++undecided;
        if (decision.ok() && decision->allowed()) ++granted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(undecided, 0);
  EXPECT_EQ(granted, 500);  // of 800
}

TEST_P(SharedLimiterTest, CallbacksComeOnceEachAndTheLastOnesAtTheEnd) {
  constexpr int kCalls = 2000;
  std::atomic<int> told = 0;
  std::atomic<int> granted = 0;
  std::atomic<bool> waited_in_callback = false;
  const Quota quota = *Quota::FixedWindow(kCalls / 2, 24h * 3650);
  {
    SharedLimiter limiter = Open();
    for (int i = 0; i < kCalls; ++i) {
      limiter.TryAcquireAsync("async", quota, 1, [&](const Result<Decision>& decision) {
        if (decision.ok() && decision->allowed()) ++granted;
        ++told;
      });
    }
    ASSERT_TRUE(WaitUntil([&] { return told == kCalls; }));
    EXPECT_EQ(granted, kCalls / 2);
    limiter.PeekAsync("async", quota, 1, [&](const Result<Decision>&) {
      // It would wait for the thread it is called on.
      const Result<Decision> again = limiter.Peek("async", quota);
      waited_in_callback = again.ok() || again.error().code != Code::kFailedPrecondition;
      ++told;
    });
    ASSERT_TRUE(WaitUntil([&] { return told == kCalls + 1; }));
    EXPECT_FALSE(waited_in_callback);
    for (int i = 0; i < kCalls; ++i) {
      limiter.RefundAsync("async", quota, 1, [&](const Result<Decision>&) { ++told; });
    }
  }
  EXPECT_EQ(told, 2 * kCalls + 1);
}

TEST_P(SharedLimiterTest, AnswersInTimeWhileTheStoreStandsStillAndIsExactAgain) {
  SharedLimiter limiter = Open({.timeout = 200ms});
  SharedLimiter patient = Open();
  const Quota quota = *Quota::FixedWindow(1000, 24h * 3650);
  // The first use opens connections, which may take longer than the timeout.
  ASSERT_TRUE(WaitUntil([&] { return limiter.TryAcquire("still", quota).ok(); }));
  const std::int64_t before = patient.Peek("still", quota)->remaining;
  server().Pause();
  for (int i = 0; i < 10; ++i) {
    const test::Stopwatch watch;
    const Result<Decision> decision = limiter.TryAcquire("still", quota);
    EXPECT_LT(watch.elapsed(), 1s);
    ASSERT_FALSE(decision.ok());
    EXPECT_THAT(decision.error().code,
                ::testing::AnyOf(Code::kDeadlineExceeded, Code::kUnavailable));
  }
  EXPECT_FALSE(limiter.health().ok());
  server().Resume();
  ASSERT_TRUE(WaitUntil([&] { return limiter.Peek("still", quota).ok(); }));
  ASSERT_TRUE(WaitUntil([&] { return patient.Peek("still", quota).ok(); }));
  // Calls in flight when the store stopped may have been charged; nothing else was.
  const std::int64_t after = patient.Peek("still", quota)->remaining;
  EXPECT_LE(after, before);
  EXPECT_GE(after, before - 10);
  EXPECT_EQ(patient.TryAcquire("still", quota)->remaining, after - 1);
}

TEST_P(SharedLimiterTest, TheExampleSharesItsLimitWithItself) {
  const test::RunResult first =
      test::RunProgram({test::BuildFolder() + "/example_shared", server().url()});
  EXPECT_EQ(first.exit_code, 0) << first.error_output;
  // 12 attempts for 10 permits.
  EXPECT_TRUE(first.output.starts_with("job done, 9 left\njob done, 8 left\n")) << first.output;
  EXPECT_TRUE(first.output.ends_with("job done, 0 left\nno more this hour\nno more this hour\n"));
  const test::RunResult second =
      test::RunProgram({test::BuildFolder() + "/example_shared", server().url()});
  EXPECT_EQ(second.output.find("done"), std::string::npos) << second.output;
  EXPECT_EQ(std::ranges::count(second.output, '\n'), 12);
}

INSTANTIATE_TEST_SUITE_P(Stores, SharedLimiterTest,
                         ::testing::ValuesIn(test::AndMysql({"redis", "redis_cluster", "postgres",
                                                             "mariadb"})),
                         [](const auto& store) { return store.param; });

TEST(SharedLimiterOpen, SaysWhatIsWrong) {
  const auto error = [](const std::string& url, SharedLimiterOptions options = {}) {
    const auto limiter = SharedLimiter::Open(url, std::move(options));
    return limiter.ok() ? Error{Code::kInternal, "none"} : limiter.error();
  };
  for (const char* url :
       {"", "memory:", "localhost", "oracle://me:secret@db", "redis:", "redi://x"}) {
    EXPECT_EQ(error(url).code, Code::kInvalidArgument) << url;
    EXPECT_THAT(error(url).message, HasSubstr("must begin with redis://")) << url;
    EXPECT_THAT(error(url).message, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(error("oracle://db").message, HasSubstr("not oracle://"));
  EXPECT_EQ(error("redis://h:port").code, Code::kInvalidArgument);
  const std::string redis = "redis://127.0.0.1:1";
  EXPECT_THAT(error(redis, {.timeout = 0ms}).message, HasSubstr("timeout: must be"));
  EXPECT_THAT(error(redis + "?gather=6ms", {.timeout = 11ms}).message,
              HasSubstr("gather=6ms is more than half of the store timeout, which is 11ms"));
  EXPECT_THAT(error(redis + "?gather=11ms", {}).message, HasSubstr("at most 10ms"));
  EXPECT_THAT(error(redis, {.connect_timeout = -1ms}).message, HasSubstr("connect_timeout: must"));
  EXPECT_THAT(error(redis, {.connections = 1001}).message, HasSubstr("connections: more"));
  EXPECT_THAT(error(redis, {.max_waiting = 0}).message, HasSubstr("max_waiting: must"));
  EXPECT_THAT(error(redis, {.prefix = std::string(65, 'x')}).message, HasSubstr("prefix: longer"));
}

/// Too long for any test to have waited for it.
const SharedLimiterOptions kVeryPatient{.timeout = 1s, .connect_timeout = 60s};

Result<SharedLimiter> OpenAtOnce(const std::string& url) {
  const auto began = std::chrono::steady_clock::now();
  auto limiter = SharedLimiter::Open(url, kVeryPatient);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
  return limiter;
}

void ExpectNotLetIn(std::string url, const std::string& password, const char* reason) {
  url.replace(url.find(password), password.size(), "notthisone");
  const auto limiter = OpenAtOnce(url);
  ASSERT_FALSE(limiter.ok());
  EXPECT_THAT(limiter.error().code,
              ::testing::AnyOf(Code::kUnauthenticated, Code::kPermissionDenied));
  EXPECT_THAT(limiter.error().message, HasSubstr(reason));
  EXPECT_THAT(limiter.error().message, Not(HasSubstr("notthisone")));
}

TEST(SharedLimiterOpen, SaysAtOnceThatTheStoreDoesNotLetItIn) {
  const std::string password = "opensesame";
  const test::RedisServer redis({.password = password});
  ASSERT_TRUE(SharedLimiter::Open(redis.url(), kVeryPatient).ok());
  ExpectNotLetIn(redis.url(), password, "authentication failed: redis 127.0.0.1:");
  const test::RedisCluster cluster({.replicas = false, .password = password});
  ASSERT_TRUE(SharedLimiter::Open(cluster.url(), kVeryPatient).ok());
  ExpectNotLetIn(cluster.url(), password, "WRONGPASS");

  test::PostgresServer postgres;
  postgres.Query(
      "CREATE ROLE guest LOGIN PASSWORD 'opensesame'; GRANT CREATE ON SCHEMA public TO "
      "guest");
  postgres.RequirePasswords();
  const std::string database = "@127.0.0.1:" + std::to_string(postgres.port()) + "/postgres";
  const std::string url = "postgres://guest:opensesame" + database;
  auto let_in = SharedLimiter::Open(url, kVeryPatient);
  ASSERT_TRUE(let_in.ok()) << let_in.error().message;
  ExpectNotLetIn(url, password, "password authentication failed for user \"guest\"");

  test::MariadbServer mariadb;
  mariadb.Query("CREATE USER guest IDENTIFIED BY 'opensesame'; GRANT ALL ON *.* TO guest");
  std::string guest = mariadb.tcp_url();
  guest.replace(0, guest.find('@'), "mysql://guest:opensesame");
  let_in = SharedLimiter::Open(guest, kVeryPatient);
  ASSERT_TRUE(let_in.ok()) << let_in.error().message;
  ExpectNotLetIn(guest, password, "Access denied for user 'guest'");
}

TEST(SharedLimiterOpen, SaysAtOnceThatNoHostHasTheName) {
  // Host names must not begin like this: no DNS query is needed.
  for (const char* url : {"redis://-nobody-", "redis+cluster://-nobody-,-none-",
                          "postgres://me@-nobody-/db", "mysql://me@-nobody-/db"}) {
    const auto limiter = OpenAtOnce(url);
    ASSERT_FALSE(limiter.ok()) << url;
    EXPECT_EQ(limiter.error().code, Code::kNotFound) << url << limiter.error().message;
    EXPECT_THAT(limiter.error().message, HasSubstr("cannot resolve host -nobody-")) << url;
  }
}

TEST(SharedLimiterOpen, LeavesTheProgramsLogAsItIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  telemetry::ConfigureLog({.level = telemetry::Level::kDebug, .fd = ends[1]});
  for (const char* scheme : {"redis", "postgres", "mysql"}) {
    const std::string url =
        scheme + std::string("://127.0.0.1:") + std::to_string(test::FreePort()) + "/1";
    auto limiter = SharedLimiter::Open(url, {.connect_timeout = 0ms});
    ASSERT_TRUE(limiter.ok()) << limiter.error().message;
    // Many failures in a row: more than the breaker tolerates.
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(limiter->TryAcquire("k", *Quota::TokenBucket(1, 1)).ok());
    }
  }
  telemetry::Log(telemetry::Level::kInfo, "the program's own");
  telemetry::FlushLog();
  telemetry::ConfigureLog({});
  ::close(ends[1]);
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(::read(ends[0], said.data(), said.size())));
  ::close(ends[0]);
  EXPECT_THAT(said, HasSubstr("the program's own"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST(SharedLimiterOpen, AStoreThatIsAwayIsAnErrorUnlessNobodyWaitsForIt) {
  const std::string nobody = std::to_string(test::FreePort());
  for (const std::string& url :
       {"redis://:secret@127.0.0.1:" + nobody, "postgres://me:secret@127.0.0.1:" + nobody + "/db",
        "mysql://me:secret@127.0.0.1:" + nobody + "/db"}) {
    const auto limiter = SharedLimiter::Open(url, {.connect_timeout = 100ms});
    ASSERT_FALSE(limiter.ok()) << url;
    EXPECT_EQ(limiter.error().code, Code::kUnavailable) << url << limiter.error().message;
    EXPECT_THAT(limiter.error().message, HasSubstr("the store: not responding: "));
    EXPECT_THAT(limiter.error().message, Not(HasSubstr("secret")));
    auto later = SharedLimiter::Open(url, {.connect_timeout = 0ms});
    ASSERT_TRUE(later.ok()) << later.error().message;
    const Result<Decision> decision = later->TryAcquire("k", *Quota::TokenBucket(1, 1));
    ASSERT_FALSE(decision.ok());
    EXPECT_FALSE(later->health().ok());
  }
}

TEST(SharedLimiterCalls, ThatMakeNoSenseAreRefusedAtOnce) {
  auto opened = SharedLimiter::Open("redis://127.0.0.1:" + std::to_string(test::FreePort()),
                                    {.connect_timeout = 0ms, .max_waiting = 1});
  ASSERT_TRUE(opened.ok());
  SharedLimiter limiter = std::move(*opened);
  const Quota quota = *Quota::TokenBucket(1, 1);
  EXPECT_EQ(limiter.TryAcquire("", quota).error().message, "key: is empty");
  EXPECT_EQ(limiter.Reset(std::string(4001, 'k')).error().message, "key: longer than 4000 bytes");
  EXPECT_EQ(limiter.TryAcquireAll({}).error().message, "asks: must be 1 to 256");
  const std::vector<Ask> many(257, Ask{.key = "k", .quota = &quota});
  EXPECT_EQ(limiter.TryAcquireAll(many).error().message, "asks: must be 1 to 256");
  const Ask asks[] = {{.key = "k", .quota = &quota}, {.key = "k"}};
  EXPECT_EQ(limiter.TryAcquireAll(asks).error().message, "asks[1].quota: is missing");
  const Ask empty[] = {{.key = "", .quota = &quota}};
  EXPECT_EQ(limiter.TryAcquireAll(empty).error().message, "asks[0].key: is empty");
}

}  // namespace
}  // namespace weir
