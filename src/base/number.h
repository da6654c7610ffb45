#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace weir {

/// The number that `text` is, all of it: no sign but a minus, no spaces, nothing behind it. Nothing
/// if it is anything else or does not fit.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) noexcept {
  static_assert(std::is_integral_v<Number>);
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, number, base);
  if (failed != std::errc() || at != end) return std::nullopt;
  return number;
}

/// The same for a number within `least` and `most`.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, Number least, Number most) noexcept {
  const std::optional<Number> number = ParseNumber<Number>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

/// The same for a fraction such as 0.25.
inline std::optional<double> ParseFraction(std::string_view text) noexcept {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || at != end) return std::nullopt;
  return number;
}

/// Appends its digits, of a fraction the shortest that read back as the same.
template <typename Number>
void AppendNumber(std::string& out, Number number) {
  char digits[32];  // no number is longer
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace weir
