// The primary of a database dies under load, and a replica is promoted: nodes that know both find
// the new one by themselves, and not one request too many is admitted.

#include "fault/stores/failover.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/child_process.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace weir::test {
namespace {

/// A primary that acknowledges nothing before its replica has it.
struct PostgresPair {
  PostgresPair() {
    primary.Query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.Query("SELECT pg_reload_conf()");
    EXPECT_TRUE(WaitUntil([&] {
      return primary.Query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") ==
             "1";
    }));
  }
  std::string store() const {
    return "postgres://weir@127.0.0.1:" + std::to_string(primary.port()) +
           ",127.0.0.1:" + std::to_string(replica.port()) + "/postgres";
  }

  PostgresServer primary;
  PostgresServer replica{primary};
};

TEST(FailOver, APostgresReplicaIsPromotedUnderLoad) {
  PostgresPair pair;
  ExpectExactAcross(pair.store(), [&](Nodes&) {
    pair.primary.Crash();
    std::this_thread::sleep_for(500ms);
    pair.replica.Promote();
  });
}

// The replica is cut off first. What the primary commits from then on is lost with it, so none of
// it may have been granted, although statement_timeout ends the wait for the replica.
TEST(FailOver, APostgresPrimaryGrantsNothingThatItsReplicaDoesNotHave) {
  PostgresPair pair;
  ExpectExactAcross(pair.store(), [&](Nodes& nodes) {
    pair.replica.Pause();
    for (const std::uint16_t port : nodes.ports()) {
      EXPECT_TRUE(WaitUntil([&] { return !Decides(port); }));
    }
    const auto until = std::chrono::steady_clock::now() + 3s;
    while (std::chrono::steady_clock::now() < until) EXPECT_FALSE(Decides(nodes.ports()[0]));
    pair.primary.Crash();
    pair.replica.Resume();
    pair.replica.Promote();
  });
}

// It does not know what its replica has granted since, and accepts writes as before.
TEST(FailOver, APostgresPrimaryThatComesBackIsNotUsed) {
  PostgresPair pair;
  ExpectExactAcross(pair.store(), [&](Nodes& nodes) {
    pair.primary.Crash();
    pair.replica.Promote();
    for (const std::uint16_t port : nodes.ports()) {
      ASSERT_TRUE(WaitUntil([&] { return Decides(port); }));
    }
    pair.primary.Start();
    // The old primary no longer waits for its replica.
    pair.primary.Query("ALTER SYSTEM RESET synchronous_standby_names");
    pair.primary.Query("SELECT pg_reload_conf()");
    const std::string rows = "SELECT l::text FROM weir_limits l ORDER BY 1";
    const std::string before = pair.primary.Query(rows);
    ASSERT_TRUE(WaitUntil([&] { return Decides(nodes.ports()[0]); }));
    pair.replica.TerminateBackends();
    const auto complains = [&](std::size_t node) {
      return nodes[node].process().error_output().find("both accept writes") != std::string::npos;
    };
    EXPECT_TRUE(WaitUntil([&] { return complains(0) && complains(1); }))
        << nodes[0].process().error_output();
    EXPECT_EQ(pair.primary.Query(rows), before);
    pair.primary.Stop();
  });
}

TEST(FailOver, AMariadbReplicaIsPromotedUnderLoad) {
  MariadbServer primary({"log-bin", "server-id=1", "binlog-format=ROW"});
  MariadbServer replica({"server-id=2", "read-only=1"});
  replica.Query(
      "CHANGE MASTER TO master_host='127.0.0.1', master_port=" + std::to_string(primary.port()) +
      ", master_user='weir', master_use_gtid=slave_pos; START SLAVE");
  const std::string store = HostsOf("node", replica, primary);
  ExpectExactAcross(store, [&](Nodes&) {
    // A manual switch-over: the primary takes no writes, the replica catches up and takes over.
    primary.Query("SET GLOBAL read_only = 1; FLUSH TABLES WITH READ LOCK; UNLOCK TABLES");
    const std::string position = primary.Query("SELECT @@gtid_binlog_pos");
    ASSERT_EQ(replica.Query("SELECT MASTER_GTID_WAIT('" + position + "', 20)"), "0");
    replica.Query("STOP SLAVE; SET GLOBAL read_only = 0");
    // Otherwise the old primary may still be the one that decides.
    EXPECT_TRUE(WaitUntil([&] { return Sessions(replica) >= 2; }));
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
  ExpectExactAcross(store, [&](Nodes&) {
    // As above: not even a privileged session may write to the old primary from here on.
    primary.Query("SET GLOBAL super_read_only = 1; FLUSH TABLES WITH READ LOCK; UNLOCK TABLES");
    const std::string executed = primary.Query("SELECT @@global.gtid_executed");
    ASSERT_EQ(replica.Query("SELECT WAIT_FOR_EXECUTED_GTID_SET('" + executed + "', 20)"), "0");
    replica.Query("STOP REPLICA; SET GLOBAL read_only = 0");
    EXPECT_TRUE(WaitUntil([&] { return Sessions(replica) >= 2; }));
  });
}

// read_only would not hold for such a user: both servers would grant the limit.
TEST(FailOver, AUserWhoMayWriteToAReadOnlyServerIsRefused) {
  MariadbServer primary;
  MariadbServer replica({"read-only=1"});
  const std::string store = HostsOf("weir", replica, primary);
  const RunResult migrated = RunProgram({Program(), "migrate", "--store", store});
  EXPECT_NE(migrated.exit_code, 0);
  EXPECT_NE(migrated.error_output.find("READ ONLY ADMIN"), std::string::npos)
      << migrated.error_output;
}

}  // namespace
}  // namespace weir::test
