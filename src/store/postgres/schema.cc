#include "store/postgres/schema.h"

#include "drivers/postgres/migration.h"
#include "store/postgres/sql.h"

namespace weir::store::postgres {

Status Migrate(const std::string& url) {
  const char* const limits[] = {kLimits1};
  if (Status made = weir::postgres::Migrate(url, "limits", limits); !made.ok()) return made;
  // They are for people: limits must not depend on someone with the right to create them.
  const char* const views[] = {kViews1};
  Status made = weir::postgres::Migrate(url, "views", views);
  return !made.ok() && made.error().code == Code::kPermissionDenied ? Status() : made;
}

}  // namespace weir::store::postgres
