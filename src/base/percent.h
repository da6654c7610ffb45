#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// The value of a hexadecimal digit; -1 if `c` is not one.
constexpr int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Decodes each escape such as %41, and each `space` to a space unless `space` is 0. Nothing if an
/// escape is incomplete or not hexadecimal. The result may contain any bytes, including zeros.
std::optional<std::string> PercentDecoded(std::string_view text, char space = 0);

}  // namespace weir
