// The subscription's thread, a real control plane (go-control-plane), and other threads that read
// the policies concurrently. Run under ThreadSanitizer as well, unlike the whole program.

#include "drivers/xds/subscription.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include "drivers/xds/rate_limit_config.h"
#include "policy/catalog.h"
#include "policy/envoy_config.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::xds {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatient{60};

/// Building the control plane requires go.
class NeedsGo : public ::testing::Environment {
 public:
  void SetUp() override {
    if (test::RunProgram({"sh", "-c", "command -v go"}).exit_code != 0) {
      GTEST_SKIP() << "the control plane is built with go, which is not installed";
    }
    const auto made = test::RunProgram({test::SourcePath("tests/support/xds/fetch.sh")}, {},
                                       std::chrono::minutes(5));
    ASSERT_EQ(made.exit_code, 0) << made.error_output;
  }
};

const auto* const kNeedsGo = ::testing::AddGlobalTestEnvironment(new NeedsGo);

/// Runs tests/support/xds/main.go, which takes one state per line.
class Plane {
 public:
  explicit Plane(std::uint16_t port) : port_(port) {
    file_.open(states_ / "states", std::ios::app);
    process_.emplace(std::vector<std::string>{
        "bash", "-c",
        "tail -n +1 -f \"$0\" | exec " + test::SourcePath("build/xds/xds") + " \"$1\" node-7",
        (states_ / "states").string(), "127.0.0.1:" + std::to_string(port)});
    EXPECT_TRUE(process_->WaitForLine("listening ", kPatient)) << process_->error_output();
  }

  std::string url() const { return "grpc://127.0.0.1:" + std::to_string(port_); }
  void Set(const std::string& configs) { (file_ << '[' << configs << "]\n").flush(); }
  /// This many requests a day for each user of the domain `edge`.
  void SetPerUser(int limit) {
    Set(R"({"name":"edge","domain":"edge","descriptors":[{"key":"user","rate_limit":{"unit":"DAY","requests_per_unit":)" +
        std::to_string(limit) + "}}]}");
  }
  std::optional<std::string> WaitFor(std::string_view text) {
    return process_->WaitForLine(text, kPatient);
  }

 private:
  const std::uint16_t port_;
  test::TempDir states_;
  std::ofstream file_;
  std::optional<test::ChildProcess> process_;
};

/// What `weir serve` does with a state.
class SubscriptionTest : public ::testing::Test {
 protected:
  SubscriptionOptions OptionsFor(const std::string& url) {
    SubscriptionOptions options;
    options.server.url = url;
    options.node_id = "node-7";
    options.type_url = kRateLimitConfigType;
    options.first_pause = std::chrono::milliseconds(10);
    options.longest_pause = std::chrono::milliseconds(100);
    options.on_state = [this](const State& state) { return PutInForce(state); };
    options.on_change = [this](const std::string& problem) { problem.empty() ? ++ups_ : ++downs_; };
    return options;
  }

  Status PutInForce(const State& state) {
    std::vector<policy::Definition> policies;
    std::vector<policy::yaml::Problem> problems;
    for (const std::string& resource : state.resources) {
      const auto config = ReadRateLimitConfig(resource, false);
      if (!config.ok()) return config.error();
      for (auto& definition : policy::ParseEnvoyConfig(config->yaml, config->name, problems)) {
        policies.push_back(std::move(definition));
      }
    }
    problems = catalog_.SetManaged(std::move(policies), std::move(problems));
    if (problems.empty()) return {};
    return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
  }

  /// The limit of a user, or 0, looked up like in a reactor.
  std::int64_t Limit() const {
    const auto set = catalog_.live().Current();
    const policy::Entry user{"user", "anna"};
    policy::MatchBuffer buffer;
    set->Match("edge", policy::Descriptor(&user, 1), buffer);
    return buffer.applying.empty() ? 0 : buffer.applying[0].policy->quota()->limit();
  }

  policy::Catalog catalog_{policy::CompileOptions{}};
  std::atomic<int> ups_{0};
  std::atomic<int> downs_{0};
};

TEST_F(SubscriptionTest, OthersReadThePoliciesWhileTheyChange) {
  Plane plane(test::FreePort());
  plane.SetPerUser(1);
  Subscription subscription(OptionsFor(plane.url()));
  ASSERT_TRUE(test::WaitUntil([&] { return Limit() == 1; }));
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      std::int64_t last = 1;
      while (!stop) {
        const std::int64_t limit = Limit();
        if (limit < last || limit > 20 || !subscription.connected()) ++wrong;
        last = limit;
        (void)catalog_.status();
        (void)(subscription.accepted() + subscription.refused());
        std::this_thread::yield();
      }
    });
  }
  for (int limit = 2; limit <= 20; ++limit) {
    plane.SetPerUser(limit);
    EXPECT_TRUE(test::WaitUntil([&] { return Limit() == limit; })) << limit;
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(test::WaitUntil([&] { return subscription.accepted() == 20; }));
  EXPECT_EQ(subscription.refused(), 0U);
  EXPECT_EQ(ups_, 1);
  EXPECT_EQ(downs_, 0);
}

TEST_F(SubscriptionTest, ARefusedStateChangesNothingAndTheNextOneIsTaken) {
  Plane plane(test::FreePort());
  plane.SetPerUser(3);
  const Subscription subscription(OptionsFor(plane.url()));
  ASSERT_TRUE(test::WaitUntil([&] { return Limit() == 3; }));
  plane.Set(R"({"name":"bad","domain":"bad","descriptors":[{"key":"a","rate_limit":{}}]})");
  const auto refusal = plane.WaitFor("nack 2");
  ASSERT_TRUE(refusal);
  EXPECT_THAT(*refusal, HasSubstr("unit"));
  EXPECT_EQ(Limit(), 3);
  plane.SetPerUser(4);  // while the subscription may be waiting to refuse again
  EXPECT_TRUE(test::WaitUntil([&] { return Limit() == 4; }));
  EXPECT_GE(subscription.refused(), 1U);
}

TEST_F(SubscriptionTest, FollowsAControlPlaneThatIsStartedAgain) {
  const std::uint16_t port = test::FreePort();
  std::optional<Plane> plane(std::in_place, port);
  plane->SetPerUser(5);
  const Subscription subscription(OptionsFor(plane->url()));
  ASSERT_TRUE(test::WaitUntil([&] { return Limit() == 5; }));
  plane.reset();
  EXPECT_TRUE(test::WaitUntil([&] { return !subscription.connected(); }));
  EXPECT_EQ(Limit(), 5);
  plane.emplace(port);
  plane->SetPerUser(6);
  EXPECT_TRUE(test::WaitUntil([&] { return Limit() == 6; }));
  EXPECT_TRUE(subscription.connected());
  EXPECT_EQ(ups_, 2);
  EXPECT_EQ(downs_, 1);
}

// It ends wherever its thread is: before it has connected, between two states, in a pause.
TEST_F(SubscriptionTest, EndsAtAnyMoment) {
  Plane plane(test::FreePort());
  plane.SetPerUser(7);
  for (int i = 0; i < 30; ++i) {
    std::optional<Subscription> subscription(std::in_place, OptionsFor(plane.url()));
    if (i % 3 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(i));
    if (i % 3 == 2) {
      EXPECT_TRUE(test::WaitUntil([&] { return subscription->accepted() > 0; }));
    }
    const auto begin = std::chrono::steady_clock::now();
    subscription.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  }
  EXPECT_EQ(Limit(), 7);
}

TEST_F(SubscriptionTest, EndsWhileAServerAcceptsAndSaysNothing) {
  const test::TcpServer silent([](test::TcpConnection& peer) { (void)peer.ReadAll(); });
  SubscriptionOptions options = OptionsFor("grpc://127.0.0.1:" + std::to_string(silent.port()));
  const auto begin = std::chrono::steady_clock::now();
  {
    const Subscription subscription(options);
    EXPECT_TRUE(test::WaitUntil([&] { return silent.open() == 1; }));
    EXPECT_FALSE(subscription.connected());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace weir::xds
