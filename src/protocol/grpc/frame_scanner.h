#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::grpc {

/// The nine bytes before every HTTP/2 frame.
struct FrameHead {
  std::size_t length = 0;
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::int32_t stream = 0;
};

/// Finds the frames in a client's bytes, in pieces of any size, without reading their payload. Not
/// thread-safe.
class FrameScanner {
 public:
  /// The next head that is complete in `bytes` from `at` on; moves `at` past it, and past
  /// payload that is skipped on the way. `begin` is where the head's first byte in `bytes` is.
  std::optional<FrameHead> Next(std::string_view bytes, std::size_t& at,
                                std::size_t& begin) noexcept {
    const std::size_t skip = std::min(skip_, bytes.size() - at);
    skip_ -= skip;
    at += skip;
    begin = at;
    while (have_ < head_.size() && at < bytes.size()) {
      head_[have_++] = static_cast<std::uint8_t>(bytes[at++]);
    }
    if (have_ < head_.size()) return std::nullopt;
    have_ = 0;
    FrameHead head;
    head.length = (std::size_t{head_[0]} << 16U) | (std::size_t{head_[1]} << 8U) | head_[2];
    head.type = head_[3];
    head.flags = head_[4];
    head.stream =
        static_cast<std::int32_t>(((head_[5] & 0x7FU) << 24U) | (std::uint32_t{head_[6]} << 16U) |
                                  (std::uint32_t{head_[7]} << 8U) | head_[8]);
    skip_ = head.length;
    return head;
  }

  /// The last head will be found again; this many bytes of it will be passed once more.
  void PutBack(std::size_t bytes) noexcept {
    skip_ = 0;
    have_ = head_.size() - bytes;
  }

 private:
  static constexpr std::size_t kPreface = 24;

  std::size_t skip_ = kPreface;
  std::size_t have_ = 0;
  std::array<std::uint8_t, 9> head_{};
};

}  // namespace weir::grpc
