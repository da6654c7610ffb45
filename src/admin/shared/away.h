#pragma once

#include "weir/result.h"

namespace weir::policy::shared {

/// Whether the database did not answer, or not in time.
bool IsAway(const Error& error);
/// The caller's error. Says whether the change was made, unless its commit was not answered.
Error Away(const Error& why);
/// For calls after one whose change may have been made: they were not begun.
Error NotBegun(const Error& why);

}  // namespace weir::policy::shared
