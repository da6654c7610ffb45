#pragma once

// The service counts in milliseconds; people do not.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::app {

/// How long to wait, for people: 640 → "640 ms", 4250 → "4.3 s", 90000 → "1 min 30 s", 90000000 →
/// "1 d 1 h". Rounded up.
std::string Wait(std::int64_t milliseconds);

/// The text with times such as "90000 ms" replaced by these.
std::string WithWaits(std::string_view text);

}  // namespace weir::app
