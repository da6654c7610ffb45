#pragma once

#include <map>
#include <string>

#include "sparse.h"
#include "store_load.h"

namespace weir::bench {

/// Checks that arrive at random moments, 1,000, 3,000 and 5,000 a second, whether or not those
/// before them are answered: CPU time of the server on `port` for each, and how long after its
/// arrival it is answered. `make` as it is, and each of `gathering`, by name, with checks that wait
/// for others, beside INCRBY and PEXPIRE in one write for each. All take short turns; told are the
/// medians of the turns, and latencies of all of them.
void MeasureGather(int port, const MakeStore& make,
                   const std::map<std::string, MakeStore>& gathering, const TellFigure& tell);

}  // namespace weir::bench
