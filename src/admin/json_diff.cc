#include "admin/json_diff.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

namespace weir::admin {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Fields FieldsOf(std::string_view json) {
  Fields fields;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(json.data(), json.size()).get(object) != simdjson::SUCCESS) return fields;
  for (const auto field : object) {
    if (field.key == "id" || field.key == "version") continue;
    fields.emplace_back(field.key, simdjson::minify(field.value));
  }
  return fields;
}

const std::string* Find(const Fields& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [name](const auto& field) { return field.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<FieldDifference> Differences(std::string_view before, std::string_view after) {
  const Fields was = FieldsOf(before);
  const Fields is = FieldsOf(after);
  std::vector<FieldDifference> differences;
  for (const auto& [name, value] : was) {
    const std::string* now = Find(is, name);
    if (now != nullptr && *now == value) continue;
    differences.push_back({name, value, now == nullptr ? "" : *now});
  }
  for (const auto& [name, value] : is) {
    if (Find(was, name) == nullptr) differences.push_back({name, "", value});
  }
  return differences;
}

}  // namespace weir::admin
