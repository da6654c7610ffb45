#pragma once

#include <string>
#include <string_view>

namespace weir {

/// Where and why `text` is not JSON: "line 1, column 12: expected ',' or '}'", the column in
/// characters. Empty if it is JSON. For messages: it takes time proportional to the text.
std::string JsonProblem(std::string_view text);

}  // namespace weir
