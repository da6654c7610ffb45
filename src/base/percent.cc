#include "base/percent.h"

#include <cstddef>

namespace weir {

std::optional<std::string> PercentDecoded(std::string_view text, char space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      decoded.push_back(space != 0 && text[i] == space ? ' ' : text[i]);
    }
  }
  return decoded;
}

}  // namespace weir
