#include "base/json_text.h"

#include <cstddef>
#include <cstdint>

#include "base/hex.h"
#include "base/utf8.h"

namespace weir {
namespace {

void AppendEscape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      AppendHex(out, static_cast<unsigned char>(c));
  }
}

void AppendUnit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  AppendHex(out, static_cast<unsigned char>(unit >> 8U));
  AppendHex(out, static_cast<unsigned char>(unit & 0xffU));
}

/// Some characters beyond ASCII also control a terminal, end a line or reverse its direction.
void AppendEscape(std::string& out, std::uint32_t code) {
  if (code < 0x10000) return AppendUnit(out, code);
  AppendUnit(out, 0xd800 + ((code - 0x10000) >> 10U));
  AppendUnit(out, 0xdc00 + ((code - 0x10000) & 0x3ffU));
}

bool NeedsEscape(char c) noexcept {
  return static_cast<std::uint8_t>(c) < 0x20 || c == '"' || c == '\\' || c == '\x7f';
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;  // where the bytes begin that can be copied as they are
  for (std::size_t i = 0; i < text.size();) {
    if (NeedsEscape(text[i])) {
      out.append(text, plain, i - plain);
      AppendEscape(out, text[i]);
      plain = ++i;
      continue;
    }
    const std::size_t length = Utf8SequenceLength(text.substr(i));
    if (length == 0) {
      out.append(text, plain, i - plain);
      out += "\xef\xbf\xbd";
      plain = ++i;
      continue;
    }
    if (length > 1) {
      const std::uint32_t code = CodePointOf(text.substr(i, length));
      if (IsUnseen(code)) {
        out.append(text, plain, i - plain);
        AppendEscape(out, code);
        plain = i + length;
      }
    }
    i += length;
  }
  out.append(text, plain);
  out += '"';
}

}  // namespace weir
