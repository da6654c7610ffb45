#pragma once

#include <string>

#include "drivers/sqlite/database.h"
#include "weir/result.h"

namespace weir::policy::sqlite {

// Which limited domain requests belong to that name none, kept so that a start can tell whether
// they have moved since the service last ran.

/// Empty: none was written. Before any other write to the database; blocks.
Result<std::string> ReadImpliedDomain(weir::sqlite::Database& database);
/// Any thread; does not wait.
void WriteImpliedDomain(weir::sqlite::Database& database, std::string domain);

}  // namespace weir::policy::sqlite
