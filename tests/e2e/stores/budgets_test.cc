// Charging afterwards, and reserving and settling: the same through every endpoint and in
// the library, under every algorithm and on every kind of store, as calculated by hand.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "e2e/stores/budget_doors.h"
#include "envoy/service/ratelimit/v3/rls.grpc.pb.h"
#include "support/and_mysql.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;

using namespace std::chrono_literals;

struct Kind {
  std::string name;
  std::string quota;
  Quota same;  ///< for programs that use the library
};

/// 100 of each, and nothing is refilled within a test.
const std::vector<Kind>& Budgets() {
  static const std::vector<Kind> kinds = {
      {"bucket", "token_bucket: { capacity: 100, refill: 1, period: 1000h }",
       *Quota::TokenBucket(100, 1, 1000h)},
      {"fixed", "fixed_window: { limit: 100, window: 1000d }", *Quota::FixedWindow(100, 24'000h)},
      {"anchored", "anchored_window: { limit: 100, window: 1000d }",
       *Quota::AnchoredWindow(100, 24'000h)},
      {"log", "sliding_log: { limit: 100, window: 1000d }", *Quota::SlidingLog(100, 24'000h)},
      {"counter", "sliding_counter: { limit: 100, window: 1000d }",
       *Quota::SlidingCounter(100, 24'000h, 10)}};
  return kinds;
}

/// Each test and endpoint has its own key.
std::string KeyOf(const std::string& kind, const std::string& use, const std::string& door) {
  return kind + "-" + use + "-" + door;
}

/// A policy of each kind for each of these keys, and of each kind for Envoy's descriptors.
std::string Policies(const std::vector<std::string>& doors) {
  std::string own = "policies:\n";
  for (const std::string& door : doors) {
    const auto add = [&](const std::string& key, const std::string& quota) {
      own.append("  - { name: ").append(key).append(", key: ").append(key);
      own.append(", quota: { ").append(quota).append(" } }\n");
    };
    for (const std::string use : {"spent", "reserved"}) {
      for (const Kind& kind : Budgets()) add(KeyOf(kind.name, use, door), kind.quota);
      add(KeyOf("flight", use, door), "concurrency: { limit: 2, lease: 1h }");
    }
  }
  return own;
}

std::string EnvoyPolicies() {
  std::string text = "domain: edge\ncharge: reports\npolicies:\n";
  for (const Kind& kind : Budgets()) {
    text += "  - { name: " + kind.name + ", match: { " + kind.name + ": \"*\" }, quota: { " +
            kind.quota + " } }\n";
  }
  return text;
}

Quota QuotaOf(const std::string& key) {
  for (const Kind& kind : Budgets()) {
    if (key.starts_with(kind.name)) return kind.same;
  }
  return *Quota::Concurrency(2, 1h);
}

/// A store and the program on it, for all tests of one kind of store.
struct World {
  explicit World(const std::string& kind) {
    if (kind != "memory") store = StoreServer::Make(kind);
    dir.Write("own.yaml", Policies({"http", "grpc", "resp"}));
    dir.Write("envoy.yaml", EnvoyPolicies());
    weir = std::make_unique<WeirProcess>(std::vector<std::string>{
        "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0",
        "--store", store == nullptr ? "memory:" : store->url(), "--store-timeout", "5s",
        "--policies", (dir / "own.yaml").string(), "--policies", (dir / "envoy.yaml").string(),
        "--data", (dir / "data").string()});
    doors.push_back(std::make_unique<HttpBudgets>(weir->Port("http")));
    doors.push_back(std::make_unique<GrpcBudgets>(weir->Port("grpc")));
    doors.push_back(std::make_unique<RespBudgets>(weir->Port("resp")));
    if (store != nullptr) doors.push_back(std::make_unique<LibraryBudgets>(store->url(), QuotaOf));
  }

  TempDir dir;
  std::unique_ptr<StoreServer> store;
  std::unique_ptr<WeirProcess> weir;
  std::vector<std::unique_ptr<BudgetDoor>> doors;
};

class BudgetsTest : public ::testing::TestWithParam<std::string> {
 protected:
  BudgetsTest() {
    // Tests alternate between stores, so all of them stay until the end.
    std::unique_ptr<World>& world = worlds_[GetParam()];
    if (world == nullptr) world = std::make_unique<World>(GetParam());
  }
  static void TearDownTestSuite() { worlds_.clear(); }
  World& world() { return *worlds_[GetParam()]; }

 private:
  static inline std::map<std::string, std::unique_ptr<World>> worlds_;
};

TEST_P(BudgetsTest, WhatIsChargedAfterwardsCountsAndLeavesADebt) {
  for (const auto& door : world().doors) {
    for (const Kind& kind : Budgets()) {
      const std::string key = KeyOf(kind.name, "spent", door->name());
      SCOPED_TRACE(key);
      EXPECT_EQ(door->Check(key, 60), Standing(true, 40));
      EXPECT_EQ(door->Check(key, 60), Standing(false, 40));    // an ordinary check must fit
      EXPECT_EQ(door->Overdraw(key, 60), Standing(false, 0));  // 120 of 100
      EXPECT_EQ(door->Overdraw(key, 0), Standing(false, 0));
      EXPECT_EQ(door->Check(key, 1), Standing(false, 0));
      EXPECT_EQ(door->Refund(key, 15).remaining, 0);  // 105: the debt comes first
      EXPECT_EQ(door->Overdraw(key, 0), Standing(false, 0));
      EXPECT_EQ(door->Refund(key, 15).remaining, 10);  // 90
      EXPECT_EQ(door->Overdraw(key, 0), Standing(true, 10));
      EXPECT_EQ(door->Check(key, 10), Standing(true, 0));
    }
    const std::string flight = KeyOf("flight", "spent", door->name());
    EXPECT_EQ(door->Overdraw(flight, 5), Standing(true, 2)) << flight;  // nothing to owe
  }
}

TEST_P(BudgetsTest, AnEstimateIsReservedAndSettledAtItsRealCost) {
  for (const auto& door : world().doors) {
    for (const Kind& kind : Budgets()) {
      const std::string key = KeyOf(kind.name, "reserved", door->name());
      SCOPED_TRACE(key);
      std::string first;
      EXPECT_EQ(door->Reserve(key, 60, first), Standing(true, 40));
      std::string refused;
      EXPECT_EQ(door->Reserve(key, 41, refused), Standing(false, 40));
      EXPECT_EQ(refused, "");
      Standing standing(false, -1);
      EXPECT_TRUE(door->Settle(first, 25, standing));  // less than was reserved
      EXPECT_EQ(standing.remaining, 75);
      EXPECT_FALSE(door->Settle(first, 25, standing));  // once
      EXPECT_EQ(door->Overdraw(key, 0), Standing(true, 75));
      std::string second;
      EXPECT_EQ(door->Reserve(key, 75, second), Standing(true, 0));
      EXPECT_TRUE(door->Settle(second, 95, standing));  // more: 120 of 100
      EXPECT_EQ(standing.remaining, 0);
      EXPECT_EQ(door->Overdraw(key, 0), Standing(false, 0));
      EXPECT_EQ(door->Refund(key, 30).remaining, 10);
    }
    const std::string flight = KeyOf("flight", "reserved", door->name());
    SCOPED_TRACE(flight);
    std::string held;
    EXPECT_EQ(door->Reserve(flight, 2, held), Standing(true, 0));
    EXPECT_EQ(door->Check(flight, 1), Standing(false, 0));
    Standing standing(false, -1);
    EXPECT_TRUE(door->Settle(held, 7, standing));  // the work is over, whatever it cost
    EXPECT_EQ(standing.remaining, 2);
  }
}

/// Reports one descriptor of the domain `edge`, with its own hits.
RateLimitResponse Report(RateLimitService::Stub& stub, const std::string& kind, std::uint64_t hits,
                         bool back = false) {
  RateLimitRequest request;
  request.set_domain("edge");
  auto& descriptor = *request.add_descriptors();
  auto& entry = *descriptor.add_entries();
  entry.set_key(kind);
  entry.set_value("anna");
  descriptor.mutable_hits_addend()->set_value(hits);
  descriptor.set_is_negative_hits(back);
  ::grpc::ClientContext context;
  RateLimitResponse response;
  const ::grpc::Status status = stub.ShouldRateLimit(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.statuses_size(), 1);
  return response;
}

TEST_P(BudgetsTest, EnvoysReportsCountWhetherTheyFitOrNot) {
  const auto stub = RateLimitService::NewStub(
      ::grpc::CreateChannel("127.0.0.1:" + std::to_string(world().weir->Port("grpc")),
                            ::grpc::InsecureChannelCredentials()));
  for (const Kind& kind : Budgets()) {
    SCOPED_TRACE(kind.name);
    const auto expect = [&](const RateLimitResponse& got, bool fits, std::uint32_t left) {
      EXPECT_EQ(got.overall_code(), fits ? RateLimitResponse::OK : RateLimitResponse::OVER_LIMIT);
      ASSERT_EQ(got.statuses_size(), 1);
      EXPECT_EQ(got.statuses(0).limit_remaining(), left);
      EXPECT_EQ(got.statuses(0).current_limit().requests_per_unit(), 100U);
    };
    expect(Report(*stub, kind.name, 0), true, 100);
    expect(Report(*stub, kind.name, 60), true, 40);
    expect(Report(*stub, kind.name, 0), true, 40);
    expect(Report(*stub, kind.name, 60), false, 0);  // 120 of 100
    expect(Report(*stub, kind.name, 0), false, 0);
    Report(*stub, kind.name, 30, /*back=*/true);
    expect(Report(*stub, kind.name, 0), true, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, BudgetsTest,
                         ::testing::ValuesIn(AndMysql({"memory", "redis", "redis_cluster",
                                                       "postgres", "mariadb"})),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace weir::test
