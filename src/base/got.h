#pragma once

#include <string>
#include <string_view>

namespace weir {

/// What was given instead of what a message asks for, to end it with: ", got 'noon'". A long text
/// is cut, and one that a log or a terminal would not show as it is has '?' in it.
std::string Got(std::string_view text);
/// The same for a value in JSON: `, got {"a":1}`.
std::string GotJson(std::string_view json);

}  // namespace weir
