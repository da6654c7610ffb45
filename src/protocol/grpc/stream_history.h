#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weir::grpc {

/// Which streams a peer has used recently, so that frames on streams that it has closed or skipped
/// are refused as RFC 9113 (5.1, 5.1.1) requires. Bounded: older streams are unknown, and frames on
/// them are ignored. Not thread-safe.
class StreamHistory {
 public:
  /// The peer begins this stream.
  void Open(std::int32_t id) noexcept {
    if (id - 2 > last_) skipped_[next_skipped_++ % skipped_.size()] = {last_ + 2, id - 2};
    last_ = std::max(last_, id);
  }
  /// The peer has finished this stream, and the stream has ended.
  void Close(std::int32_t id) noexcept { closed_[next_closed_++ % closed_.size()] = id; }

  std::int32_t last() const noexcept { return last_; }
  bool Closed(std::int32_t id) const noexcept {
    return std::find(closed_.begin(), closed_.end(), id) != closed_.end();
  }
  bool Skipped(std::int32_t id) const noexcept {
    return std::any_of(skipped_.begin(), skipped_.end(),
                       [id](const auto& range) { return range.first <= id && id <= range.second; });
  }

 private:
  std::int32_t last_ = -1;
  std::array<std::int32_t, 32> closed_{};
  std::array<std::pair<std::int32_t, std::int32_t>, 8> skipped_{};  // none: 0 to 0
  std::size_t next_closed_ = 0;
  std::size_t next_skipped_ = 0;
};

}  // namespace weir::grpc
