#include "remote/waits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/number.h"

namespace weir::app {

std::string Wait(std::int64_t milliseconds) {
  if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
  if (milliseconds <= 59'900) {
    const std::int64_t tenths = (milliseconds + 99) / 100;
    const std::string rest = tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10);
    return std::to_string(tenths / 10) + rest + " s";
  }
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> kUnits = {
      {{86'400, " d"}, {3'600, " h"}, {60, " min"}, {1, " s"}}};
  std::int64_t seconds = milliseconds / 1000 + (milliseconds % 1000 == 0 ? 0 : 1);
  std::string text;
  int parts = 0;
  for (const auto& [size, unit] : kUnits) {
    const std::int64_t count = seconds / size;
    seconds %= size;
    if (count == 0 || parts == 2) continue;
    text += (parts++ == 0 ? "" : " ") + std::to_string(count) + unit;
  }
  return text;
}

std::string WithWaits(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_of("0123456789");
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    if (begin == text.npos) break;
    const std::string_view digits = text.substr(begin, end - begin);
    out += text.substr(0, begin);
    text.remove_prefix(end);
    const std::string_view after = text.substr(0, 4);
    const bool waits =
        after.starts_with(" ms") && (after.size() == 3 || std::isalnum(after[3]) == 0);
    const auto number = waits ? ParseNumber<std::int64_t>(digits, 0, INT64_MAX) : std::nullopt;
    out += number ? Wait(*number) : std::string(digits);
    if (number) text.remove_prefix(3);
  }
  return out.append(text);
}

}  // namespace weir::app
