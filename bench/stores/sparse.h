#pragma once

#include <functional>
#include <string>

#include "store_load.h"

namespace weir::bench {

using TellFigure = std::function<void(const std::string& name, double value, const char* unit)>;

/// Single checks at 1,000, 3,000 and 5,000 a second, each sent when the one before is answered:
/// the CPU time of each on the server on `port`, compared with INCRBY and PEXPIRE in one write, an
/// empty script, the minimum for a limit in a script, and our script for calls of any content.
/// All alternate in short turns, so that other load on the machine affects all of them; printed is
/// the median of the turns.
void MeasureSparse(int port, const MakeStore& make, const TellFigure& tell);

}  // namespace weir::bench
