#include "admin/redis/mark.h"

#include <random>

#include "base/number.h"

namespace weir::policy::redis {

std::string Mark::ToString() const { return std::to_string(changes) + " " + epoch; }

Mark Mark::Parse(std::string_view text) {
  const std::size_t space = text.find(' ');
  const auto changes = ParseNumber<std::int64_t>(text.substr(0, space));
  if (space == std::string_view::npos || !changes) return {};
  return {std::string(text.substr(space + 1)), *changes};
}

std::string NewEpoch() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::uniform_int_distribution<std::size_t> digit(0, kDigits.size() - 1);
  std::string epoch;
  for (int i = 0; i < 32; ++i) epoch += kDigits[digit(random)];
  return epoch;
}

}  // namespace weir::policy::redis
