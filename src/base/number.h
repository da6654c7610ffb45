#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace weir {

/// Parses all of `text` as a number: no sign except a minus, no spaces, nothing after it. Nothing
/// if it is anything else or out of range.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) noexcept {
  static_assert(std::is_integral_v<Number>);
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, number, base);
  if (failed != std::errc() || at != end) return std::nullopt;
  return number;
}

/// Likewise for a number between `least` and `most`.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, Number least, Number most) noexcept {
  const std::optional<Number> number = ParseNumber<Number>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

/// Likewise for a fraction such as 0.25.
inline std::optional<double> ParseFraction(std::string_view text) noexcept {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || at != end) return std::nullopt;
  return number;
}

/// Appends the number in decimal, a fraction with the fewest digits that read back as the same.
template <typename Number>
void AppendNumber(std::string& out, Number number) {
  char digits[32];  // no number is longer
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace weir
