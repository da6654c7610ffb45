#pragma once

// What the readers of a body share: its fields, and how they say what is wrong with them. For their
// .cc files.

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "weir/result.h"

namespace weir::http {

inline Error Bad(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

inline Error BadJson() { return Bad("the body is not well-formed JSON"); }

/// Where we are in the body, for messages only: built when something is wrong.
struct Place {
  std::size_t check = 0;
  bool batch = false;

  std::string Field(std::string_view name) const {
    std::string text = batch ? "checks[" + std::to_string(check) + "]" : std::string();
    if (!name.empty()) text.append(text.empty() ? "" : ".").append(name);
    return text;
  }
  Error Wrong(std::string_view name, std::string_view what) const {
    std::string text = Field(name);
    return Bad(text.append(text.empty() ? "" : ": ").append(what));
  }
};

inline bool IsSyntaxError(simdjson::error_code error) {
  return error != simdjson::SUCCESS && error != simdjson::INCORRECT_TYPE &&
         error != simdjson::NUMBER_OUT_OF_RANGE;
}

/// Calls `read(name, value)` for each field of an object, until it returns an error.
template <typename Read>
Status ReadFields(simdjson::ondemand::object& object, Read read) {
  for (auto element : object) {
    simdjson::ondemand::field field;
    std::string_view name;
    if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
    if (Status status = read(name, field.value()); !status.ok()) return status;
  }
  return {};
}

}  // namespace weir::http
