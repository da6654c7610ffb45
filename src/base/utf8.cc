#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/hex.h"

namespace weir {

std::size_t Utf8SequenceLength(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  std::uint32_t point = 0;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
    point = first & 0x1fU;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    point = first & 0x0fU;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    point = first & 0x07U;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
    point = (point << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
    return 0;
  return length;
}

std::uint32_t CodePointOf(std::string_view sequence) noexcept {
  constexpr std::array<std::uint8_t, 5> kOfFirst = {0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<std::uint8_t>(sequence[0]) & kOfFirst[sequence.size()];
  for (const char c : sequence.substr(1))
    code = code << 6U | (static_cast<std::uint8_t>(c) & 0x3fU);
  return code;
}

bool IsUnseen(std::uint32_t code) noexcept {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 9> kRanges = {{{0x00, 0x1f},
                                                                               {0x7f, 0x9f},
                                                                               {0xad, 0xad},
                                                                               {0x61c, 0x61c},
                                                                               {0x200b, 0x200f},
                                                                               {0x2028, 0x202e},
                                                                               {0x2060, 0x206f},
                                                                               {0xfeff, 0xfeff},
                                                                               {0xe0000, 0xe007f}}};
  return std::any_of(kRanges.begin(), kRanges.end(), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

bool IsPrintableUtf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto first = static_cast<std::uint8_t>(text.front());
    if (first < 0x20 || first == 0x7f) return false;
    const std::size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string StorableUtf8(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<std::uint8_t>(text.front());
    const bool zero = first == 0;
    const std::size_t length = zero ? 0 : Utf8SequenceLength(text);
    std::string piece(text.substr(0, length));
    if (length == 0) {
      piece = "\\x";
      AppendHex(piece, first);
    }
    if (out.size() + piece.size() > most) break;
    out += piece;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace weir
