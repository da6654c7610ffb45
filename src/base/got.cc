#include "base/got.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace weir {
namespace {

constexpr std::size_t kMostShown = 64;

std::string Bounded(std::string_view text) {
  std::size_t end = std::min(text.size(), kMostShown);
  // Not within a character.
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  std::string shown(text.substr(0, end));
  if (!IsPrintableUtf8(shown)) {
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  }
  return end < text.size() ? shown + "…" : shown;
}

}  // namespace

std::string Got(std::string_view text) { return ", got '" + Bounded(text) + "'"; }

std::string GotJson(std::string_view json) { return ", got " + Bounded(json); }

}  // namespace weir
