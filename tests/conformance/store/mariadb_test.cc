#include "conformance/store/sql_backend.h"
#include "store/mysql/pool.h"
#include "support/mariadb_server.h"

namespace weir::store::conformance {

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<SqlBackend<test::MariadbServer, decltype(&mysql::OpenPool)>>(
      clock, mysql::OpenPool);
}

}  // namespace weir::store::conformance
