#pragma once

#include <string>

namespace weir::bench {

/// A year of feeds on a PostgreSQL of its own, day by day: WEIR_BENCH_DAY events (a thousand) are
/// done each day, events leave for the archive after 30 days and their ids are forgotten after 90.
/// Prints what an event takes where, how long a set takes to leave, whether the tables stop
/// growing, and the sizes for a million a day.
void MeasureYear(const std::string& name);

}  // namespace weir::bench
