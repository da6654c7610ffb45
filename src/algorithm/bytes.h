#pragma once

// Integers in state bytes: little-endian at fixed width, or LEB128 varints.

#include <bit>
#include <cstdint>
#include <cstring>

namespace weir::algorithm {

static_assert(std::endian::native == std::endian::little,
              "states are copied as they lie in memory");

template <typename T>
T Load(const std::uint8_t* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void Store(std::uint8_t* at, T value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

/// The most bytes a varint of a 64-bit value takes.
inline constexpr std::uint32_t kMaxVarint = 10;

/// Writes `value` and returns the byte after it.
inline std::uint8_t* PutVarint(std::uint8_t* at, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

/// Reads a varint into `value` and returns the byte after it, or null if the bytes up to `end` are
/// not one: cut short, above 64 bits or longer than necessary.
inline const std::uint8_t* GetVarint(const std::uint8_t* at, const std::uint8_t* end,
                                     std::uint64_t& value) noexcept {
  std::uint64_t sum = 0;
  for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
    const std::uint64_t byte = *at++;
    const std::uint64_t part = byte & 0x7F;
    if (shift == 63 && part > 1) return nullptr;
    sum |= part << shift;
    if (byte < 0x80) {
      if (byte == 0 && shift > 0) return nullptr;
      value = sum;
      return at;
    }
  }
  return nullptr;
}

}  // namespace weir::algorithm
