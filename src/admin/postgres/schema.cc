#include "admin/postgres/schema.h"

#include "admin/postgres/policy_store.h"
#include "drivers/postgres/migration.h"

namespace weir::policy::postgres {

Status Migrate(const std::string& url) {
  const char* const steps[] = {kPolicies1};
  return weir::postgres::Migrate(url, "policies", steps);
}

}  // namespace weir::policy::postgres
