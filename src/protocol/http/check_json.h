#pragma once

// How the readers of a check's body say what is wrong with it. For their .cc files.

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

}  // namespace weir::http
