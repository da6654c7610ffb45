// What /admin/explain reports about leased policies: what this node holds, all its threads

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Matches;
using ::testing::Not;

// Nothing runs out within the test.
constexpr std::string_view kPolicies = R"(
policies:
  - { name: permits, match: { user: "*" }, mode: leased,
      quota: { token_bucket: { capacity: 1000000, refill_per_second: 1000 } } }
  - { name: rate, match: { route: "*" }, mode: rate_leased,
      quota: { token_bucket: { capacity: 1000000, refill_per_second: 8000 } } }
  - { name: jobs, match: { queue: "*" }, mode: leased,
      quota: { concurrency: { limit: 100000, lease: 60s } } }
  - { name: exact, match: { exact: "*" }, quota: { fixed_window: { limit: 1000000, window: 1h } } }
)";

class HeldTest : public ::testing::Test {
 protected:
  std::unique_ptr<WeirProcess> Serve(const std::string& store) {
    return std::make_unique<WeirProcess>(std::vector<std::string>{
        "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--threads", "2",
        "--store", store, "--store-timeout", "5s", "--policies",
        dir_.Write("policies.yaml", kPolicies), "--data", dir_ / "data"});
  }

  /// As if by a busy client, and what explain says in the middle of it.
  static std::string Explained(HttpClient& client, const std::string& entry) {
    for (int i = 0; i < 20; ++i) {
      client.Post("/v1/check", R"({"descriptors":[{")" + entry + R"(":"hot"}]})");
    }
    return client.Get("/admin/explain?" + entry + "=hot").body;
  }

  TempDir dir_;
};

TEST_F(HeldTest, ExplainTellsWhatThisNodeHolds) {
  RedisServer redis;
  const auto weir = Serve(redis.url());
  HttpClient client(weir->Port("http"));
  EXPECT_THAT(client.Get("/admin/explain?user=hot").body,
              HasSubstr(R"("mode":"leased","leased":false,"held":0,"estimated":true)"));
  const std::string url = "http://127.0.0.1:" + std::to_string(weir->Port("http"));
  EXPECT_THAT(
      RunProgram({Program(), "explain", "-e", "user=hot", "--url", url}).output,
      HasSubstr("\nnote: policy 'permits' is leased: what nodes hold (this one 0), and what "
                "was lost with a node or an answer, counts as used until "));
  const auto tells = [&](const std::string& entry, const std::string& regex) {
    std::string said;
    EXPECT_TRUE(WaitUntil([&] {
      said = Explained(client, entry);
      return Matches(ContainsRegex(regex))(said);
    })) << said;
  };
  tells("user", R"("mode":"leased","leased":true,"held":[1-9][0-9]*,"estimated":true)");
  tells("queue", R"("mode":"leased","leased":true,"held":[1-9][0-9]*,"estimated":true)");
  tells("route", R"("mode":"rate_leased","leased":true,"held":[0-9]+,"estimated":true,)"
                 R"("sharePerSecond":[1-9])");
  // By its bucket, and from whichever thread.
  for (int i = 0; i < 8; ++i) {
    HttpClient other(weir->Port("http"));
    Explained(client, "user");
    EXPECT_THAT(other.Get("/admin/explain?bucket=default%2Fpermits%7Cuser:hot").body,
                ContainsRegex(R"("leased":true,"held":[1-9])"));
  }
  EXPECT_THAT(Explained(client, "exact"), AllOf(Not(HasSubstr("held")), Not(HasSubstr("leased"))));
}

TEST_F(HeldTest, InMemoryNothingIsLeased) {
  const auto weir = Serve("memory:");
  HttpClient client(weir->Port("http"));
  EXPECT_THAT(Explained(client, "user"), AllOf(HasSubstr("permits"), Not(HasSubstr("held"))));
}

}  // namespace
}  // namespace weir::test
