#pragma once

#include <algorithm>
#include <string_view>

#include "base/ascii.h"

namespace weir::filter {

/// Whether some server reads a field called `name` as `field`: in any case, and with `_` or any
/// other sign for `-`. CGI and its descendants cannot tell `_` from `-`, and lighttpd turns
/// everything that is neither a letter nor a digit into `_`.
inline bool ReadsAsField(std::string_view name, std::string_view field) noexcept {
  const auto folded = [](char c) { return IsLetterOrDigit(c) ? Lower(c) : '-'; };
  return name.size() == field.size() &&
         std::equal(name.begin(), name.end(), field.begin(),
                    [&](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace weir::filter
