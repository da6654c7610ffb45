#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir {

/// The candidate that `word` was probably meant to be, or nothing if none is near.
std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

/// "is not a field of a check; did you mean cost? The fields are key, cost and overdraw". The last
/// of `fields` may be more than a name.
std::string NotAField(std::string_view name, std::string_view what,
                      std::span<const std::string_view> fields);

}  // namespace weir
