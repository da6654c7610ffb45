// The primary of a database dies under load, and a replica is promoted: nodes that know both find
// the new one by themselves, and not one request too many has passed.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "e2e/stores/nodes.h"
#include "support/check_load.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kLimit = 3000;
constexpr const char* kPolicies = R"(
policies:
  - name: hot
    match: { hot: "*" }
    quota: { fixed_window: { limit: 3000, window: 100d } }
    on_store_error: deny
)";
constexpr const char* kBody = R"({"descriptors":[{"hot":"1"}]})";

std::int64_t Allowed(const std::vector<LoadRecord>& records) {
  return std::count_if(records.begin(), records.end(),
                       [](const LoadRecord& record) { return record.check.allowed; });
}

/// Checks are decided by the store: a refusal is not for want of it.
bool Decides(std::uint16_t port) {
  const HttpResponse answer = HttpClient(port).Post("/v1/check", kBody);
  return answer.body.find("\"degraded\":true") == std::string::npos;
}

std::string HostsOf(const std::string& user, const MysqlFamilyServer& one,
                    const MysqlFamilyServer& other) {
  return "mysql://" + user + "@127.0.0.1:" + std::to_string(one.port()) +
         ",127.0.0.1:" + std::to_string(other.port()) + "/weir";
}

/// How many of the nodes' sessions the server has.
int Sessions(MysqlFamilyServer& server) {
  return std::stoi(
      server.Query("SELECT count(*) FROM information_schema.processlist WHERE user = 'node'"));
}

/// `fail_over` returns when another server takes writes.
void ExpectExactAcross(const std::string& store, const std::function<void()>& fail_over) {
  Nodes nodes(2, store, kPolicies, {"--policy-store", "sqlite:", "--threads", "1"});
  CheckLoad before(nodes.ports(), 4, kBody, 1ms);
  ASSERT_TRUE(WaitUntil([&] { return Decides(nodes.ports()[0]); }));
  std::this_thread::sleep_for(300ms);
  fail_over();
  for (const std::uint16_t port : nodes.ports()) {
    EXPECT_TRUE(WaitUntil([&] { return Decides(port); }, 20s)) << nodes[0].process().error_output();
  }
  const std::int64_t passed = Allowed(before.Stop());
  EXPECT_GT(passed, 0);
  // Until nothing is left.
  CheckLoad after(nodes.ports(), 8, kBody);
  EXPECT_TRUE(WaitUntil(
      [&] {
        const HttpResponse answer = HttpClient(nodes.ports()[1]).Post("/v1/check", kBody);
        return answer.body.find("\"allowed\":false") != std::string::npos &&
               answer.body.find("\"degraded\":true") == std::string::npos;
      },
      60s));
  const std::int64_t total = passed + Allowed(after.Stop());
  // Those of the looks above passed, too, and what was committed but not answered is lost to all.
  EXPECT_LE(total, kLimit);
  EXPECT_GT(total, kLimit / 2);
}

TEST(FailOver, APostgresReplicaIsPromotedUnderLoad) {
  PostgresServer primary;
  PostgresServer replica(primary);
  // Nothing is answered before the replica has it.
  primary.Query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  primary.Query("SELECT pg_reload_conf()");
  ASSERT_TRUE(WaitUntil([&] {
    return primary.Query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") ==
           "1";
  }));
  const std::string store = "postgres://weir@127.0.0.1:" + std::to_string(primary.port()) +
                            ",127.0.0.1:" + std::to_string(replica.port()) + "/postgres";
  ExpectExactAcross(store, [&] {
    primary.Crash();
    std::this_thread::sleep_for(500ms);
    replica.Promote();
  });
}

TEST(FailOver, AMariadbReplicaIsPromotedUnderLoad) {
  MariadbServer primary({"log-bin", "server-id=1", "binlog-format=ROW"});
  MariadbServer replica({"server-id=2", "read-only=1"});
  replica.Query(
      "CHANGE MASTER TO master_host='127.0.0.1', master_port=" + std::to_string(primary.port()) +
      ", master_user='weir', master_use_gtid=slave_pos; START SLAVE");
  const std::string store = HostsOf("node", replica, primary);
  ExpectExactAcross(store, [&] {
    // A switch-over by hand: the primary takes no more, the replica catches up and takes over.
    primary.Query("SET GLOBAL read_only = 1; FLUSH TABLES WITH READ LOCK; UNLOCK TABLES");
    const std::string position = primary.Query("SELECT @@gtid_binlog_pos");
    ASSERT_EQ(replica.Query("SELECT MASTER_GTID_WAIT('" + position + "', 20)"), "0");
    replica.Query("STOP SLAVE; SET GLOBAL read_only = 0");
    // Else the old primary may still be the one that decides.
    EXPECT_TRUE(WaitUntil([&] { return Sessions(replica) >= 2; }, 20s));
  });
}

TEST(FailOver, AMysqlReplicaIsPromotedUnderLoad) {
  if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  MysqlServer primary(
      {"log-bin=binlog", "server-id=1", "gtid-mode=ON", "enforce-gtid-consistency=ON"});
  MysqlServer replica(
      {"server-id=2", "gtid-mode=ON", "enforce-gtid-consistency=ON", "read-only=1"});
  replica.Query("CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port=" +
                std::to_string(primary.port()) +
                ", source_user='weir', source_auto_position=1, get_source_public_key=1");
  replica.Query("START REPLICA");
  const std::string store = HostsOf("node", replica, primary);
  ExpectExactAcross(store, [&] {
    // As above: not even a privileged session may write to the old primary from here on.
    primary.Query("SET GLOBAL super_read_only = 1; FLUSH TABLES WITH READ LOCK; UNLOCK TABLES");
    const std::string executed = primary.Query("SELECT @@global.gtid_executed");
    ASSERT_EQ(replica.Query("SELECT WAIT_FOR_EXECUTED_GTID_SET('" + executed + "', 20)"), "0");
    replica.Query("STOP REPLICA; SET GLOBAL read_only = 0");
    EXPECT_TRUE(WaitUntil([&] { return Sessions(replica) >= 2; }, 20s));
  });
}

// read_only would not hold for such a user: both servers would grant the limit.
TEST(FailOver, AUserWhoMayWriteToAReadOnlyServerIsRefused) {
  MariadbServer primary;
  MariadbServer replica({"read-only=1"});
  const std::string store = HostsOf("weir", replica, primary);
  const RunResult migrated = RunProgram({WEIR_PROGRAM, "migrate", "--store", store});
  EXPECT_NE(migrated.exit_code, 0);
  EXPECT_NE(migrated.error_output.find("READ ONLY ADMIN"), std::string::npos)
      << migrated.error_output;
}

}  // namespace
}  // namespace weir::test
