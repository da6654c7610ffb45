#include "admin/mysql/schema.h"

#include "admin/mysql/policy_store.h"
#include "drivers/mysql/migration.h"

namespace weir::policy::mysql {

Status Migrate(const std::string& url) {
  const char* const steps[] = {kPolicies1, kPolicies2};
  return weir::mysql::Migrate(url, "policies", steps);
}

}  // namespace weir::policy::mysql
