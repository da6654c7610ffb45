#include "protocol/http/uri.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::http {
namespace {

int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> DecodeBytes(std::string_view text, char space) {
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
      decoded.push_back(text[i] == space ? ' ' : text[i]);
    }
  }
  return decoded;
}

std::optional<std::string> Decode(std::string_view text, char space) {
  auto decoded = DecodeBytes(text, space);
  if (decoded && !IsPrintableUtf8(*decoded)) return std::nullopt;
  return decoded;
}

}  // namespace

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

std::optional<std::string> DecodeSegment(std::string_view text) { return Decode(text, '\0'); }

std::optional<std::string> DecodeQuery(std::string_view text) { return Decode(text, '+'); }

std::optional<std::string> DecodeAnySegment(std::string_view text) {
  return DecodeBytes(text, '\0');
}

std::optional<std::string> DecodeAnyQuery(std::string_view text) { return DecodeBytes(text, '+'); }

std::optional<QueryReader::Pair> QueryReader::Next() noexcept {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('&');
    const std::string_view part = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return Pair{part, {}};
    return Pair{part.substr(0, equals), part.substr(equals + 1)};
  }
  return std::nullopt;
}

std::optional<std::string> QueryValue(std::string_view query, std::string_view key) {
  QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    if (pair->key == key) return DecodeQuery(pair->value);
  }
  return std::nullopt;
}

}  // namespace weir::http
