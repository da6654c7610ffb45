#pragma once

#include <functional>
#include <string>

namespace weir::app {

/// "0.010000 to 86400.000000" → "0.01 to 86400".
std::string WithoutZeros(std::string text);

/// What the option takes: "a number".
using WhatIsExpected = std::function<std::string(const std::string& name)>;

/// What to add to the message about an option that got this value: "; see `weir audit`", or
/// nothing.
using WhereToLook = std::function<std::string(const std::string& name, const std::string& got)>;

/// "versions: Value x not in range 1 to 9", as CLI11 says it: what is expected instead.
std::string RangeInWords(std::string wrong, const WhatIsExpected& what, const WhereToLook& where);

}  // namespace weir::app
