#pragma once

#include <string>

#include "slots/slot_store.h"

namespace weir::bench {

/// Events claimed and done per second, in sets and one by one. Returns the rate of sets.
double MeasureExecution(slots::SlotStore& store, const std::string& name);

/// What claiming and finishing an event costs when the store holds ten thousand done events, and
/// when it holds WEIR_BENCH_EXISTING of them (a million), each on a separate PostgreSQL server.
void MeasureClaimCost(const std::string& name);

/// `weir dispatch` from the store at `url` to standard output, with all events overdue and no cap
/// in effect.
void MeasureDispatch(slots::SlotStore& store, const std::string& url, const std::string& name);

}  // namespace weir::bench
