#pragma once

// What the readers of a body share: its fields, and errors that say what is wrong with them. For
// their .cc files only.

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_problem.h"
#include "base/utf8.h"
#include "weir/result.h"

namespace weir::http {

inline Error Bad(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

/// Callers that have the whole body add the position (Located).
inline Error BadJson() { return Bad("the body is not well-formed JSON"); }

/// Adds the position to an error about invalid JSON.
inline Error Located(Error error, std::string_view body) {
  if (error.message != BadJson().message) return error;
  if (const std::string problem = JsonProblem(body); !problem.empty()) {
    error.message.append(": ").append(problem);
  }
  return error;
}

/// The value given instead, for a message: at most 40 bytes of it.
inline std::string Shown(simdjson::ondemand::value value) {
  constexpr std::size_t kMost = 40;
  simdjson::ondemand::json_type type{};
  if (value.type().get(type) == simdjson::SUCCESS) {
    if (type == simdjson::ondemand::json_type::object) return "an object";
    if (type == simdjson::ondemand::json_type::array) return "an array";
  }
  const std::string_view token = value.raw_json_token();
  const std::string_view trimmed = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
  return trimmed.size() <= kMost ? std::string(trimmed) : StorableUtf8(trimmed, kMost) + "…";
}

/// The position in the body, for messages only: built when something is wrong.
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
