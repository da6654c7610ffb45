#include "conformance/store/sql_backend.h"
#include "store/mysql/pool.h"
#include "support/needs_mysql.h"

namespace weir::store::conformance {

const ::testing::Environment* const kNeedsMysql =
    ::testing::AddGlobalTestEnvironment(new test::Needs<test::MysqlServer>);

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<SqlBackend<test::MysqlServer, decltype(&mysql::OpenPool)>>(
      clock, mysql::OpenPool);
}

}  // namespace weir::store::conformance
