#pragma once

#include <string>
#include <string_view>

namespace weir {

/// Appends the two digits of a byte.
inline void AppendHex(std::string& out, unsigned char byte,
                      std::string_view digits = "0123456789abcdef") {
  out += digits[byte >> 4U];
  out += digits[byte & 15U];
}

/// Appends %XX.
inline void AppendPercent(std::string& out, char byte) {
  out += '%';
  AppendHex(out, static_cast<unsigned char>(byte), "0123456789ABCDEF");
}

}  // namespace weir
