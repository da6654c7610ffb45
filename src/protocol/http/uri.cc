#include "protocol/http/uri.h"

#include "base/percent.h"
#include "base/utf8.h"

namespace weir::http {
namespace {

std::optional<std::string> Decode(std::string_view text, char space) {
  auto decoded = PercentDecoded(text, space);
  if (decoded && !IsPrintableUtf8(*decoded)) return std::nullopt;
  return decoded;
}

}  // namespace

std::optional<std::string> DecodeSegment(std::string_view text) { return Decode(text, '\0'); }

std::optional<std::string> DecodeQuery(std::string_view text) { return Decode(text, '+'); }

std::optional<std::string> DecodeAnySegment(std::string_view text) { return PercentDecoded(text); }

std::optional<std::string> DecodeAnyQuery(std::string_view text) {
  return PercentDecoded(text, '+');
}

}  // namespace weir::http
