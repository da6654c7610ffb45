// A MySQL or MariaDB primary is killed under load and its replica promoted. The replication is
// semi-synchronous and never falls back: what the primary acknowledges is on the replica. Under
// that condition not one request too many is admitted, also when the old primary returns.

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <type_traits>
#include <vector>

#include "fault/stores/failover.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"

namespace weir::test {
namespace {

/// The SQL statements and settings of one of the two kinds of server.
struct Words {
  std::vector<std::string> primary, replica;
  const char *attach, *enable, *attached, *status, *received, *wait, *stop;
};

// In milliseconds: 50 days, the longest that a server accepts. It waits that long for the replica.
#define WEIR_NEVER "4294967295"

const Words kMariadb = {
    {"log-bin", "server-id=1", "binlog-format=ROW", "sync-binlog=1",
     "rpl-semi-sync-master-timeout=" WEIR_NEVER, "rpl-semi-sync-master-wait-point=AFTER_SYNC"},
    {"server-id=2", "read-only=1", "rpl-semi-sync-slave-enabled=1"},
    "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='weir', "
    "master_use_gtid=slave_pos; START SLAVE",
    "SET GLOBAL rpl_semi_sync_master_enabled=1",
    "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'",
    "SHOW SLAVE STATUS",
    "\t([0-9]+-[0-9]+-[0-9]+)\t",
    "SELECT MASTER_GTID_WAIT('{}', 20)",
    "STOP SLAVE",
};

const Words kMysql = {
    {"plugin-load-add=semisync_source.so", "log-bin=binlog", "server-id=1", "gtid-mode=ON",
     "enforce-gtid-consistency=ON", "rpl-semi-sync-source-timeout=" WEIR_NEVER},
    {"plugin-load-add=semisync_replica.so", "server-id=2", "gtid-mode=ON",
     "enforce-gtid-consistency=ON", "read-only=1", "rpl-semi-sync-replica-enabled=1"},
    "CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port={}, source_user='weir', "
    "source_auto_position=1, get_source_public_key=1; START REPLICA",
    "SET GLOBAL rpl_semi_sync_source_enabled=1",
    "SHOW STATUS LIKE 'Rpl_semi_sync_source_clients'",
    "SHOW REPLICA STATUS",
    "\t([0-9a-f-]{36}:[0-9:-]+)\t",
    "SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', 20)",
    "STOP REPLICA",
};

std::string With(std::string text, const std::string& value) {
  return text.replace(text.find("{}"), 2, value);
}

template <typename Server>
class DeadPrimary : public testing::Test {
 protected:
  static constexpr bool kIsMysql = std::is_same_v<Server, MysqlServer>;

  void SetUp() override {
    if (kIsMysql && !MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
    primary_ = std::make_unique<Server>(words_.primary);
    replica_ = std::make_unique<Server>(words_.replica);
    replica_->Query(With(words_.attach, std::to_string(primary_->port())));
    ASSERT_TRUE(WaitUntil([&] { return primary_->Query(words_.attached).ends_with("\t1"); }))
        << replica_->Query(words_.status);
    primary_->Query(words_.enable);
  }

  std::string store() { return HostsOf("node", *primary_, *replica_); }

  /// Waits until everything received is applied; then it accepts writes.
  void Promote() {
    const std::string status = replica_->Query(words_.status);
    std::smatch received;
    ASSERT_TRUE(std::regex_search(status, received, std::regex(words_.received))) << status;
    ASSERT_EQ(replica_->Query(With(words_.wait, received[1])), "0") << status;
    replica_->Query(words_.stop);
    replica_->Query("SET GLOBAL read_only = 0");
  }

  /// The limit's rows at the old primary, to detect writes there.
  std::string RowsOf(Server& server) {
    return server.Query("SELECT hex(id), hex(state) FROM weir_limits ORDER BY 1");
  }

  const Words& words_ = kIsMysql ? kMysql : kMariadb;
  std::unique_ptr<Server> primary_;
  std::unique_ptr<Server> replica_;
};

using Kinds = testing::Types<MariadbServer, MysqlServer>;
TYPED_TEST_SUITE(DeadPrimary, Kinds);

TYPED_TEST(DeadPrimary, ItsReplicaIsPromotedUnderLoad) {
  ExpectExactAcross(this->store(), [&](Nodes&) {
    this->primary_->Crash();
    this->Promote();
  });
}

// The replica is cut off first. What the primary commits from then on is lost with it, so none of
// it may have been granted: the cut lasts longer than any statement may take.
TYPED_TEST(DeadPrimary, GrantsNothingThatItsReplicaDoesNotHave) {
  ExpectExactAcross(this->store(), [&](Nodes& nodes) {
    this->replica_->Pause();
    for (const std::uint16_t port : nodes.ports()) {
      EXPECT_TRUE(WaitUntil([&] { return !Decides(port); }));
    }
    const auto until = std::chrono::steady_clock::now() + 3s;
    while (std::chrono::steady_clock::now() < until) EXPECT_FALSE(Decides(nodes.ports()[0]));
    this->primary_->Crash();
    this->replica_->Resume();
    this->Promote();
  });
}

// It does not know what its replica has granted since, and accepts writes as before.
TYPED_TEST(DeadPrimary, ComesBackAndIsNotUsed) {
  ExpectExactAcross(this->store(), [&](Nodes& nodes) {
    this->primary_->Crash();
    this->Promote();
    for (const std::uint16_t port : nodes.ports()) {
      ASSERT_TRUE(WaitUntil([&] { return Decides(port); }));
    }
    this->primary_->Start();
    const std::string before = this->RowsOf(*this->primary_);
    // Existing sessions stay; lost ones are not reopened while there are two primaries.
    ASSERT_TRUE(WaitUntil([&] { return Decides(nodes.ports()[0]); }));
    const std::string sessions = this->replica_->Query(
        "SELECT group_concat(concat('KILL ', id) SEPARATOR ';') FROM "
        "information_schema.processlist WHERE user = 'node'");
    try {
      this->replica_->Query(sessions);
    } catch (const std::runtime_error&) {  // one of them ended by itself
    }
    const auto complains = [&](std::size_t node) {
      return nodes[node].process().error_output().find("both accept writes") != std::string::npos;
    };
    EXPECT_TRUE(WaitUntil([&] { return complains(0) && complains(1); }))
        << nodes[0].process().error_output();
    EXPECT_EQ(this->RowsOf(*this->primary_), before);
    this->primary_->Query("SET GLOBAL read_only = 1");
  });
}

}  // namespace
}  // namespace weir::test
