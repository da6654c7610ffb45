#pragma once

#include <string>

#include "weir/result.h"

namespace weir::store::postgres {

/// Makes the table of limits and its view, or brings them up to date; does nothing if they are.
/// Blocks.
Status Migrate(const std::string& url);

// The files of sql/: the tables, and the statements of a transaction; see lane.cc.
extern const char* const kLimits1;
extern const char* const kViews1;
extern const char* const kCreateRows;
extern const char* const kLockRows;
extern const char* const kWriteRows;
extern const char* const kSweepRows;

}  // namespace weir::store::postgres
