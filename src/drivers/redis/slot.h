#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr std::uint16_t kSlots = 16384;

/// A key's slot in a cluster: that of the text in its first pair of braces if that is not empty,
/// else of the whole key.
std::uint16_t SlotOf(std::string_view key) noexcept;

}  // namespace weir::redis
