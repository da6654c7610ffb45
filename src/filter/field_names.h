#pragma once

#include <algorithm>
#include <string_view>

#include "base/ascii.h"

namespace weir::filter {

/// Whether some server takes a field called `name` for `field`: in any case, and with `_` for `-`,
/// since CGI and what descends from it cannot tell those two apart.
inline bool ReadsAsField(std::string_view name, std::string_view field) noexcept {
  const auto folded = [](char c) {
    if (c == '_') return '-';
    return Lower(c);
  };
  return name.size() == field.size() &&
         std::equal(name.begin(), name.end(), field.begin(),
                    [&](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace weir::filter
