#pragma once

#include <string>

#include "slots/slot_store.h"

namespace weir::bench {

/// Events that are claimed and done in a second, in sets and one by one. Answers the rate of sets.
double MeasureExecution(slots::SlotStore& store, const std::string& name);

/// What claiming and finishing an event costs with ten thousand events in the store that are done,
/// and with WEIR_BENCH_EXISTING of them (a million), each on a PostgreSQL of its own.
void MeasureClaimCost(const std::string& name);

/// `weir dispatch` from the store at `url` to standard output, all of it overdue and no cap in the
/// way.
void MeasureDispatch(slots::SlotStore& store, const std::string& url, const std::string& name);

}  // namespace weir::bench
