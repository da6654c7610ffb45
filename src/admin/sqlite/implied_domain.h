#pragma once

#include <string>

#include "drivers/sqlite/database.h"
#include "weir/result.h"

namespace weir::policy::sqlite {

// The domain of requests that name none, if it has limits, stored so that a start can detect
// whether it has changed since the service last ran.

/// Empty if none was written. Call it before any other write to the database; blocks.
Result<std::string> ReadImpliedDomain(weir::sqlite::Database& database);
/// May be called on any thread; does not wait.
void WriteImpliedDomain(weir::sqlite::Database& database, std::string domain);

}  // namespace weir::policy::sqlite
