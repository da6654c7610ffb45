#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// Where `text` is not JSON, counted from 1, the column in characters, and why.
struct JsonFault {
  int line = 0;
  int column = 0;
  std::string message;
};

/// The first mistake; nothing if it is JSON. For messages: it takes time proportional to the text.
std::optional<JsonFault> FindJsonFault(std::string_view text);

/// Where and why `text` is not JSON: "line 1, column 12: expected ',' or '}'". Empty if it
/// is JSON.
std::string JsonProblem(std::string_view text);

}  // namespace weir
