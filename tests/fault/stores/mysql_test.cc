#include "support/needs_mysql.h"

namespace weir::test {
using FaultServer = MysqlServer;
const ::testing::Environment* const kNeedsMysql =
    ::testing::AddGlobalTestEnvironment(new Needs<MysqlServer>);
}  // namespace weir::test

#include "fault/stores/mysql_family_suite.h"
