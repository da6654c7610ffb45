#pragma once

#include <functional>
#include <string>

#include "store_load.h"

namespace weir::bench {

using TellFigure = std::function<void(const std::string& name, double value, const char* unit)>;

/// Single checks at 1,000, 3,000 and 5,000 a second, each sent when the one before is answered:
/// what each costs the server on `port` in CPU time, beside INCRBY and PEXPIRE in one write, an
/// empty script, the least that a limit in a script does, and our script for calls of any content.
/// All take short turns, so that whatever else the machine does meets all of them; told is the
/// median of the turns.
void MeasureSparse(int port, const MakeStore& make, const TellFigure& tell);

}  // namespace weir::bench
