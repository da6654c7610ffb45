// The database of the policies is killed and restarted: checks continue with the known policies,
// changes fail immediately and completely, and every node catches up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "e2e/policies/policy_client.h"
#include "support/and_mysql.h"
#include "support/stopwatch.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kDefault = 100;  // the default policy's capacity

/// A process with a separate limit store, so that only its policies depend on the database.
struct Node {
  Node(const TempDir& dir, const std::string& name, const std::string& url,
       const std::vector<std::string>& more = {})
      : process(Arguments(dir, name, url, more)), client(process.Port("http")) {}

  static std::vector<std::string> Arguments(const TempDir& dir, const std::string& name,
                                            const std::string& url,
                                            const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "serve",  "--http", "127.0.0.1:0",        "--grpc", "off",
        "--resp", "off",    "--policy-store",     url,      "--threads",
        "1",      "--data", (dir / name).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  WeirProcess process;
  PolicyClient client;
};

class DatabaseTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Node> Start(const std::string& name) {
    return std::make_unique<Node>(dir_, name, server_->url());
  }

  TempDir dir_;
  std::unique_ptr<StoreServer> server_ = StoreServer::Make(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Stores, DatabaseTest,
                         ::testing::ValuesIn(AndBothMysqls({"postgres", "mariadb", "redis"})),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(DatabaseTest, NodesGoOnWithWhatTheyKnowAndCatchUp) {
  auto a = Start("a");
  auto b = Start("b");
  ASSERT_EQ(a->client.Create("k", 2).status, 201);
  ASSERT_TRUE(WaitUntil([&] { return b->client.Limit("k") == 2; }));
  EXPECT_TRUE(b->client.Take("k"));

  server_->Kill();
  // Refused completely and quickly, by both nodes, every time.
  for (int i = 0; i < 3; ++i) {
    const Stopwatch watch;
    const HttpResponse refused = a->client.Update("k", 9);
    EXPECT_EQ(refused.status, 503) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("the policy database is down"));
    EXPECT_EQ(b->client.Create("new", 9).status, 503);
    EXPECT_EQ(b->client.http().Get("/admin/audit").status, 503);
    EXPECT_LT(watch.elapsed(), 3s);
  }
  // Checks are unaffected: 2 a day, of which node b has granted one.
  EXPECT_EQ(a->client.Limit("k"), 2);
  EXPECT_TRUE(b->client.Take("k"));
  EXPECT_FALSE(b->client.Take("k"));
  EXPECT_EQ(b->client.http().Get("/readyz").status, 200);
  EXPECT_THAT(b->client.http().Get("/admin/status").body, HasSubstr(R"("status":"DEGRADED")"));
  EXPECT_THAT(b->client.http().Get("/admin/status").body,
              HasSubstr("\"policyStoreHealth\":{\"up\":false,\"known\":true,"));
  EXPECT_THAT(b->client.http().Get("/metrics").body, HasSubstr("\nweir_policy_store_up 0\n"));

  // A restarted node has what it knew before it ended; a new node is not ready.
  ASSERT_EQ(a->process.process().Terminate(), 0);
  a = Start("a");
  EXPECT_EQ(a->client.Limit("k"), 2);
  EXPECT_EQ(a->client.http().Get("/readyz").status, 200);
  auto fresh = Start("fresh");
  EXPECT_EQ(fresh->client.Limit("k"), kDefault);
  EXPECT_EQ(fresh->client.http().Get("/readyz").status, 503);

  server_->Start();
  EXPECT_TRUE(WaitUntil([&] { return fresh->client.Limit("k") == 2; }));
  EXPECT_EQ(fresh->client.http().Get("/readyz").status, 200);
  // Nothing of a refused change is there.
  EXPECT_EQ(fresh->client.http().Get("/admin/policies/new").status, 404);
  EXPECT_THAT(fresh->client.http().Get("/admin/policies/k/versions").body,
              Not(HasSubstr("\"version\":2")));
  ASSERT_TRUE(WaitUntil([&] { return b->client.Update("k", 5).status == 200; }));
  EXPECT_TRUE(WaitUntil([&] { return a->client.Limit("k") == 5; }));
  EXPECT_TRUE(WaitUntil([&] { return fresh->client.Limit("k") == 5; }));
}

TEST_P(DatabaseTest, ADatabaseThatHangsHoldsNobodyUp) {
  auto node = Start("a");
  ASSERT_EQ(node->client.Create("k", 1'000'000).status, 201);
  HttpClient admin(node->process.Port("http"));
  server_->Pause();
  admin.SendRaw("DELETE /admin/policies/k HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  // The only reactor keeps working while that waits.
  const Stopwatch watch;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(node->client.Take("k"));
  EXPECT_LT(watch.elapsed(), 2s);
  const HttpResponse refused = admin.ReadResponse("DELETE");
  EXPECT_EQ(refused.status, 503) << refused.body;
  // A statement is given 1 s; before the change, a poll with the same timeout may have been under
  // way. The rest is for a slow machine.
  EXPECT_LT(watch.elapsed(), 3s);
  // Later callers wait the same: for a poll of their own, or the rest of one under way.
  for (int i = 0; i < 3; ++i) {
    const Stopwatch again;
    EXPECT_EQ(node->client.Update("k", 7).status, 503);
    EXPECT_EQ(node->client.http().Get("/admin/audit").status, 503);
    EXPECT_LT(again.elapsed(), 2 * 2s);
  }
  server_->Resume();
  EXPECT_TRUE(WaitUntil([&] { return node->client.Update("k", 7).status == 200; }));
  EXPECT_EQ(node->client.Limit("k"), 7);
}

TEST_P(DatabaseTest, WithStoreRequiredANodeDoesNotStartWithoutIt) {
  server_->Kill();
  WeirProcess weir(Node::Arguments(dir_, "a", server_->url(), {"--store-required", "true"}));
  const auto code = weir.process().Wait();
  ASSERT_TRUE(code);
  EXPECT_NE(*code, 0);
  EXPECT_THAT(weir.process().error_output(), HasSubstr("policy_store: "));
}

}  // namespace
}  // namespace weir::test
