#pragma once

#include <span>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/execution.h"
#include "weir/result.h"

// Claims and their ends, each inside one job of the writer.

namespace weir::slots::sqlite {

Result<Claim> ClaimEvents(weir::sqlite::Connection& connection, const ClaimRequest& request);
Result<std::vector<Finished>> FinishEvents(weir::sqlite::Connection& connection,
                                           std::span<const Finish> ends);
Result<std::vector<Backlog>> ReadBacklogs(weir::sqlite::Connection& connection, Millis now);

}  // namespace weir::slots::sqlite
