#include "protocol/http/uri.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/nearest.h"
#include "base/number.h"
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

std::optional<std::string> QueryValue(std::string_view query, std::string_view key) {
  QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    if (pair->key == key) return DecodeQuery(pair->value);
  }
  return std::nullopt;
}

Result<std::int64_t> QueryNumber(std::string_view query, std::string_view key, std::int64_t low,
                                 std::int64_t high, std::int64_t otherwise) {
  const std::optional<std::string> text = QueryValue(query, key);
  if (!text) return otherwise;
  if (const auto number = ParseNumber<std::int64_t>(*text, low, high)) return *number;
  return Invalid(std::string(key) + " must be a whole number from " + std::to_string(low) + " to " +
                 std::to_string(high));
}

Status CheckQuery(std::string_view query, std::initializer_list<std::string_view> names) {
  QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    if (std::find(names.begin(), names.end(), pair->key) != names.end()) continue;
    const auto nearest = Nearest(pair->key, std::span(names.begin(), names.size()));
    const std::string name = DecodeQuery(pair->key).value_or(std::string(pair->key));
    return Invalid("query: unknown parameter '" + name.substr(0, 64) + "'" +
                   (nearest ? "; did you mean " + std::string(*nearest) + "?" : ""));
  }
  return {};
}

}  // namespace weir::http
