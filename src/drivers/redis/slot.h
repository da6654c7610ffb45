#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr std::uint16_t kSlots = 16384;

/// The slot of a key in a cluster: of what stands in its first pair of braces if that is not empty,
/// else of all of it.
std::uint16_t SlotOf(std::string_view key) noexcept;

}  // namespace weir::redis
