#pragma once

#include <map>
#include <string>

#include "sparse.h"
#include "store_load.h"

namespace weir::bench {

/// Checks that arrive at random moments, 1,000, 3,000 and 5,000 a second, whether or not those
/// before them are answered: the CPU time of the server on `port` per check and its latency from
/// arrival. Compares `make` as it is, each of `gathering`, by name, whose checks wait for others,
/// and INCRBY with PEXPIRE in one write per check. All alternate in short turns; printed are the
/// medians of the turns, and latencies over all of them.
void MeasureGather(int port, const MakeStore& make,
                   const std::map<std::string, MakeStore>& gathering, const TellFigure& tell);

}  // namespace weir::bench
