// A service on the memory store that is the store of another one, and also answers checks itself:
// both charge the same keys, so leased policies have the same terms in both.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

// 1,000 at first and 100 a second: a lease lasts for 250 ms, so 25 are held back.
constexpr std::string_view kPolicies = R"(
policies:
  - { name: bucket, match: { bucket: "*" }, mode: leased,
      quota: { token_bucket: { capacity: 1000, refill_per_second: 100 } } }
  - { name: rate, match: { rate: "*" }, mode: rate_leased,
      quota: { token_bucket: { capacity: 100, refill_per_second: 200 } } }
)";

class WeirStoreTest : public ::testing::Test {
 protected:
  WeirProcess Serve(const std::string& data, const std::vector<std::string>& more) const {
    std::vector<std::string> args = {"serve",      "--http",  "127.0.0.1:0", "--grpc",   "off",
                                     "--policies", policies_, "--data",      dir_ / data};
    args.insert(args.end(), more.begin(), more.end());
    return WeirProcess(args);
  }
  static bool Check(HttpClient& client, const std::string& entry, int cost = 1) {
    const std::string body =
        R"({"descriptors":[{")" + entry + R"(":"x"}],"cost":)" + std::to_string(cost) + "}";
    return client.Post("/v1/check", body).body.find("\"allowed\":true") != std::string::npos;
  }

  TempDir dir_;
  const std::string policies_ = dir_.Write("policies.yaml", kPolicies);
};

TEST_F(WeirStoreTest, AServiceThatMayBeAStoreHoldsBackWhatLeasesNeed) {
  WeirProcess weir = Serve("store", {"--resp", "127.0.0.1:0"});
  HttpClient client(weir.Port("http"));
  EXPECT_FALSE(Check(client, "bucket", 976));
  EXPECT_TRUE(Check(client, "bucket", 975));
}

TEST_F(WeirStoreTest, AServiceThatNobodyCanLeaseFromHasTheWholeQuota) {
  WeirProcess without = Serve("a", {"--resp", "off"});
  HttpClient first(without.Port("http"));
  EXPECT_TRUE(Check(first, "bucket", 1000));
  WeirProcess closed = Serve("b", {"--resp", "127.0.0.1:0", "--config",
                                   dir_.Write("weir.yaml", "admin: { keyless: off }")});
  HttpClient second(closed.Port("http"));
  EXPECT_TRUE(Check(second, "bucket", 1000));
}

TEST_F(WeirStoreTest, TheStoreAndItsNodeTogetherAdmitNoMoreThanTheRate) {
  WeirProcess store = Serve("store", {"--resp", "127.0.0.1:0"});
  WeirProcess node = Serve("node", {"--resp", "off", "--store",
                                    "weir://127.0.0.1:" + std::to_string(store.Port("resp"))});
  std::atomic<int> admitted{0};
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (WeirProcess* weir : {&store, &node}) {
    threads.emplace_back([&admitted, begun, port = weir->Port("http")] {
      HttpClient client(port);
      while (std::chrono::steady_clock::now() - begun < 3s) admitted += Check(client, "rate");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  EXPECT_LE(admitted, 100 + 200 * took.count() + 1);
  EXPECT_GE(admitted, 150);
}

}  // namespace
}  // namespace weir::test
