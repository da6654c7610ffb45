#include "support/needs_mysql.h"

namespace weir::test {
using FaultServer = Mysql8Server;
const ::testing::Environment* const kNeedsMysql =
    ::testing::AddGlobalTestEnvironment(new Needs<Mysql8Server>);
}  // namespace weir::test

#include "fault/stores/mysql_family_suite.h"
