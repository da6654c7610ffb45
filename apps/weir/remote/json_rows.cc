#include "remote/json_rows.h"

#include <simdjson.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "console.h"
#include "remote/remote.h"

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

// Enough for a sentence with the path of a file in it: what to do is at the end of it.
constexpr std::size_t kLine = 500;

using Rows = std::vector<std::pair<std::string, std::string>>;

/// A value as rows: a list has one for each item, an object one for each field.
void AddRows(const std::string& name, const dom::element& value, Rows& rows) {
  std::string_view text;
  dom::array list;
  dom::object object;
  if (value.get(list) == simdjson::SUCCESS) {
    for (const dom::element item : list) AddRows(name, item, rows);
  } else if (value.get(object) == simdjson::SUCCESS) {
    for (const auto& [field, of_field] : object) {
      AddRows(name + (name.empty() ? "" : ".") + std::string(field), of_field, rows);
    }
  } else if (value.get(text) == simdjson::SUCCESS) {
    rows.emplace_back(name, text);
  } else {
    rows.emplace_back(name, simdjson::minify(value));
  }
}

}  // namespace

int PrintFields(const std::string& json) {
  dom::parser parser;
  dom::element answer;
  if (parser.parse(json).get(answer) != simdjson::SUCCESS || !answer.is_object()) {
    return FailUnexpected();
  }
  Rows rows;
  AddRows("", answer, rows);
  std::size_t width = 0;
  for (const auto& [name, text] : rows) width = std::max(width, Columns(Shown(name)));
  for (const auto& [name, text] : rows) {
    const std::string shown = Shown(name);
    std::cout << shown << std::string(width - Columns(shown) + 2, ' ') << Shown(text, kLine)
              << '\n';
  }
  return kExitOk;
}

}  // namespace weir::app
