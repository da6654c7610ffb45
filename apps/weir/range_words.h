#pragma once

#include <string>

namespace weir::app {

/// "0.010000 to 86400.000000" → "0.01 to 86400".
std::string WithoutZeros(std::string text);

/// "versions: Value x not in range 1 to 9", as CLI11 says it: what is expected instead.
std::string RangeInWords(std::string wrong);

}  // namespace weir::app
