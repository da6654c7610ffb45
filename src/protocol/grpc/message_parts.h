#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::grpc {

/// How many parts a message may have: checks, descriptors and entries, all of them together. Two
/// bytes are enough for an empty one, of which the parser makes an object, and parsing blocks the
/// reactor: 512 KiB of them took 30 ms.
inline constexpr std::size_t kMaxParts = 50'000;
inline constexpr std::string_view kTooManyParts =
    "a message may have at most 50000 checks, descriptors and entries together";

/// How many parts a serialized message has: its fields with the number path[0], in each of these
/// the fields path[1], and so on, added up. Stops as soon as there are more than `most`, and where
/// the message is malformed, which its parser will also detect.
std::size_t CountParts(std::string_view message, std::span<const std::uint32_t> path,
                       std::size_t most) noexcept;

/// Whether the message has more than kMaxParts.
inline bool HasTooManyParts(std::string_view message,
                            std::span<const std::uint32_t> path) noexcept {
  return message.size() > 2 * kMaxParts && CountParts(message, path, kMaxParts) > kMaxParts;
}

}  // namespace weir::grpc
