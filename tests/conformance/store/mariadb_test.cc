#include "conformance/store/sql_backend.h"
#include "store/mariadb/pool.h"
#include "support/mariadb_server.h"

namespace weir::store::conformance {

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<SqlBackend<test::MariadbServer, decltype(&mariadb::OpenPool)>>(
      clock, mariadb::OpenPool);
}

}  // namespace weir::store::conformance
