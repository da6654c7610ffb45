#pragma once

#include <string_view>

namespace weir {

/// "Too Many Requests" for 429, and so on; "Unknown" for a number without a name here.
std::string_view ReasonPhrase(int status) noexcept;

}  // namespace weir
