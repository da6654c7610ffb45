#include "range_words.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace weir::app {

std::string WithoutZeros(std::string text) {
  for (std::size_t point = text.find('.'); point != std::string::npos;
       point = text.find('.', point + 1)) {
    const std::size_t end = std::min(text.find(' ', point), text.size());
    const std::size_t last = text.find_last_not_of('0', end - 1);
    const std::size_t keep = last == point ? point : last + 1;
    text.erase(keep, end - keep);
  }
  return text;
}

std::string RangeInWords(std::string wrong, const WhatIsExpected& what, const WhereToLook& where) {
  static constexpr std::string_view kValue = ": Value ";
  static constexpr std::string_view kNotIn = " not in range ";
  const std::size_t value = wrong.find(kValue);
  const std::size_t range = wrong.rfind(kNotIn);
  if (value == std::string::npos || range == std::string::npos) return wrong;
  std::string bounds = WithoutZeros(wrong.substr(range + kNotIn.size()));
  const std::size_t to = bounds.find(" to ");
  const bool open_ended = bounds.ends_with(" to " + std::to_string(INT64_MAX)) ||
                          bounds.ends_with(" to " + std::to_string(UINT64_MAX));
  bounds = open_ended ? "of at least " + bounds.substr(0, to) : "from " + bounds;
  const std::size_t begin = value + kValue.size();
  const std::string name = wrong.substr(0, value);
  const std::string got = wrong.substr(begin, range - begin);
  return name + ": expected " + what(name) + " " + bounds + ", got '" + got + "'" +
         where(name, got);
}

}  // namespace weir::app
