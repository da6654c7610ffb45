#pragma once

#include <span>
#include <string_view>

#include "weir/result.h"

namespace weir::sqlite {

class Connection;

/// Brings one component's tables up to date. `steps[i]` takes them from version i to i+1 and is
/// never changed once released; the version reached is kept per component in `schema_version`. Each
/// step runs in a transaction of its own, so a failed one leaves the previous version.
/// kInvalidArgument if the file was written by a newer program.
Status Migrate(Connection& connection, std::string_view component,
               std::span<const char* const> steps);

}  // namespace weir::sqlite
