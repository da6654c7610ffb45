#pragma once

#include <span>
#include <string>

#include "weir/result.h"

namespace weir::store::postgres {

/// Makes the table of limits, or brings it up to date; does nothing if it is. Blocks.
Status Migrate(const std::string& url);

// The statements of a transaction; see lane.cc.
extern const char* const kCreateRows;
extern const char* const kLockRows;
extern const char* const kWriteRows;
extern const char* const kSweepRows;

}  // namespace weir::store::postgres
