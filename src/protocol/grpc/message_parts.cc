#include "protocol/grpc/message_parts.h"

#include <algorithm>
#include <optional>

namespace weir::grpc {
namespace {

/// Takes a varint from the front; nothing if there is no complete one.
std::optional<std::uint64_t> TakeVarint(std::string_view& bytes) noexcept {
  constexpr std::size_t kLongest = 10;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), kLongest); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    number |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte >= 0x80) continue;
    bytes.remove_prefix(i + 1);
    return number;
  }
  return std::nullopt;
}

/// Takes the tag of a field and the size of its value, which stays in `bytes`.
struct Field {
  std::uint32_t number;
  bool is_part;
  std::size_t size;
};
std::optional<Field> TakeField(std::string_view& bytes) noexcept {
  enum : std::uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
  const auto tag = TakeVarint(bytes);
  if (!tag) return std::nullopt;
  const auto type = static_cast<std::uint32_t>(*tag & 7U);
  std::optional<std::uint64_t> size = 0;  // also at the start or end of a group
  if (type == kVarint && !TakeVarint(bytes)) return std::nullopt;
  if (type == kFixed64) size = 8;
  if (type == kFixed32) size = 4;
  if (type == kLength) size = TakeVarint(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  return Field{static_cast<std::uint32_t>(*tag) >> 3U, type == kLength,
               static_cast<std::size_t>(*size)};
}

}  // namespace

std::size_t CountParts(std::string_view message, std::span<const std::uint32_t> path,
                       std::size_t most) noexcept {
  std::size_t count = 0;
  while (count <= most) {
    const std::optional<Field> field = TakeField(message);
    if (!field) break;
    if (field->is_part && field->number == path.front()) {
      ++count;
      if (path.size() > 1 && count <= most) {
        count += CountParts(message.substr(0, field->size), path.subspan(1), most - count);
      }
    }
    message.remove_prefix(field->size);
  }
  return count;
}

}  // namespace weir::grpc
