#include "protocol/http/query.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/nearest.h"
#include "base/number.h"
#include "protocol/http/uri.h"

namespace weir::http {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

bool IsOneOf(std::string_view name, Query::Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Error Unknown(const std::string& name, Query::Names names) {
  const auto nearest = Nearest(name, std::span(names.begin(), names.size()));
  return Invalid("query: unknown parameter '" + name.substr(0, kMaxNameBytes) + "'" +
                 (nearest ? "; did you mean " + std::string(*nearest) + "?" : ""));
}

}  // namespace

Result<Query> Query::Read(std::string_view query, Names names) {
  Query read;
  QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    std::string name = DecodeQuery(pair->key).value_or(std::string(pair->key));
    if (!IsOneOf(name, names)) return Unknown(name, names);
    if (Status added = read.Add(std::move(name), pair->value); !added.ok()) return added.error();
  }
  return read;
}

Result<Query> Query::ReadKnown(std::string_view query, Names names) {
  Query read;
  QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    std::optional<std::string> name = DecodeQuery(pair->key);
    if (!name || !IsOneOf(*name, names)) continue;
    if (Status added = read.Add(std::move(*name), pair->value); !added.ok()) return added.error();
  }
  return read;
}

Status Query::Add(std::string name, std::string_view value) {
  if (Find(name)) return GivenTwice(name);
  std::optional<std::string> decoded = DecodeQuery(value);
  if (!decoded) {
    return Invalid("query: the value of '" + name +
                   "' must be percent-encoded UTF-8 without control characters");
  }
  parameters_.emplace_back(std::move(name), std::move(*decoded));
  return {};
}

std::optional<std::string> Query::Find(std::string_view name) const {
  for (const auto& [each, value] : parameters_) {
    if (each == name) return value;
  }
  return std::nullopt;
}

Result<std::int64_t> Query::Number(std::string_view name, std::int64_t low, std::int64_t high,
                                   std::int64_t otherwise) const {
  const std::optional<std::string> text = Find(name);
  if (!text) return otherwise;
  if (const auto number = ParseNumber<std::int64_t>(*text, low, high)) return *number;
  return Invalid(std::string(name) + " must be a whole number from " + std::to_string(low) +
                 " to " + std::to_string(high));
}

bool IsRepeated(std::string_view query, const QueryReader::Pair& pair) noexcept {
  QueryReader reader(query);
  auto earlier = reader.Next();
  while (earlier && earlier->text.data() != pair.text.data() && earlier->key != pair.key) {
    earlier = reader.Next();
  }
  return earlier && earlier->text.data() != pair.text.data();
}

Error GivenTwice(std::string_view parameter) {
  return Invalid("query: '" + std::string(parameter) + "' is given twice");
}

}  // namespace weir::http
