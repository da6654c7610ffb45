#include "conformance/store/sql_backend.h"
#include "store/postgres/pool.h"
#include "support/postgres_server.h"

namespace weir::store::conformance {

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<SqlBackend<test::PostgresServer, decltype(&postgres::OpenPool)>>(
      clock, postgres::OpenPool);
}

}  // namespace weir::store::conformance
