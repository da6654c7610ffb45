// A store that restarts without its data gives everyone a full quota. That is reported where an
// operator looks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "e2e/stores/nodes.h"
#include "support/http_client.h"
#include "support/mariadb_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A node on a store, and what it reports about it.
class Watched {
 public:
  explicit Watched(const std::string& store)
      : nodes_(1, store, "policies: []\n", {"--store-timeout", "2s", "--threads", "1"}) {}

  std::string Get(const std::string& path) { return HttpClient(nodes_.ports()[0]).Get(path).body; }
  /// Whether the store decides: without it, the node would.
  bool StoreDecides() {
    const HttpResponse answer = HttpClient(nodes_.ports()[0]).Post("/v1/check", R"({"key":"k"})");
    return answer.status == 200 && answer.body.find("degraded") == std::string::npos;
  }
  std::string log() { return nodes_[0].process().error_output(); }

  bool HasLost(int times) {
    const std::string line = "\nweir_store_lost_state_total " + std::to_string(times) + "\n";
    return Get("/metrics").find(line) != std::string::npos;
  }
  void ExpectNoLoss() {
    EXPECT_TRUE(HasLost(0)) << Get("/metrics");
    EXPECT_THAT(Get("/admin/status"), Not(HasSubstr("timesLostData")));
  }
  void ExpectLoss(int times) {
    ASSERT_TRUE(WaitUntil([&] { return HasLost(times); })) << log();
    EXPECT_THAT(Get("/admin/status"),
                HasSubstr(R"("timesLostData":)" + std::to_string(times) + R"(,"lostDataAt":"20)"));
    EXPECT_TRUE(WaitUntil([&] {
      return log().find("the store has lost data") != std::string::npos;
    })) << log();
  }

 private:
  Nodes nodes_;
};

TEST(LostState, OfARedisIsInTheLogTheMetricsAndTheStatus) {
  RedisServer redis;
  Watched node(redis.url());
  node.ExpectNoLoss();
  ASSERT_TRUE(WaitUntil([&] { return redis.Command({"EXISTS", "weir:mark:0#"})[0] == '1'; }));
  redis.Command({"FLUSHALL"});
  node.ExpectLoss(1);
}

/// Empties a database, resets its mark as in an older backup, and recreates it.
template <typename Server>
void ExpectLossesAreNoticed(Server& server, const std::string& id, const std::string& all_again) {
  Watched node(server.url());
  ASSERT_TRUE(WaitUntil([&] { return node.StoreDecides(); }));
  const std::string mark = " WHERE " + id + " = '#weir-mark'";
  const auto number = [&] { return server.Query("SELECT fresh_at FROM weir_limits" + mark); };
  ASSERT_TRUE(WaitUntil([&] { return !number().empty(); }));
  // It grows, which is not a loss, and is not listed as a key.
  const std::string first = number();
  ASSERT_TRUE(WaitUntil([&] { return number() > first; }));
  node.ExpectNoLoss();
  EXPECT_THAT(node.Get("/admin/metrics"), Not(HasSubstr("mark")));
  EXPECT_THAT(server.Query("SELECT name FROM weir_keys"), Not(HasSubstr("mark")));

  server.Query("DELETE FROM weir_limits");
  node.ExpectLoss(1);
  server.Query("UPDATE weir_limits SET fresh_at = fresh_at - 1000" + mark);
  node.ExpectLoss(2);
  server.Query(all_again);
  ASSERT_TRUE(WaitUntil([&] { return node.StoreDecides(); }));
  node.ExpectLoss(3);
  EXPECT_EQ(node.log().find("cannot watch"), std::string::npos);
}

TEST(LostState, OfAPostgresIsNoticed) {
  PostgresServer server;
  ExpectLossesAreNoticed(server, "key", "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
}

TEST(LostState, OfAMariadbIsNoticed) {
  MariadbServer server;
  ExpectLossesAreNoticed(server, "id",
                         "DROP VIEW weir_keys; DROP TABLE weir_limits, weir_messages, weir_policy, "
                         "weir_policy_match, weir_policy_state, weir_audit, weir_migrations");
}

}  // namespace
}  // namespace weir::test
