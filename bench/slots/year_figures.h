#pragma once

#include <string>

namespace weir::bench {

/// A year of feeds on a separate PostgreSQL server, day by day: WEIR_BENCH_DAY events (a thousand)
/// are done each day, events move to the archive after 30 days and their ids are forgotten after
/// 90. Prints the space of an event in each place, how long moving a set takes, whether the tables
/// stop growing, and the sizes for a million a day.
void MeasureYear(const std::string& name);

}  // namespace weir::bench
