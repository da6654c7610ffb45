#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace weir::proxy {

/// Bytes between a read and a write. Fixed capacity, so the memory of a connection is bounded.
///
/// Not thread-safe: belongs to one connection.
class Buffer {
 public:
  explicit Buffer(std::size_t capacity)
      : data_(std::make_unique_for_overwrite<char[]>(capacity)), capacity_(capacity) {}

  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return begin_ == end_; }
  std::string_view view() const noexcept { return {data_.get() + begin_, end_ - begin_}; }

  void Consume(std::size_t count) noexcept {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  /// Where to write the next bytes. May move the held bytes to the front, which invalidates
  /// earlier views.
  char* space() noexcept {
    if (begin_ > 0 && capacity_ - end_ < capacity_ / 2) {
      std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    return data_.get() + end_;
  }
  std::size_t space_size() const noexcept { return capacity_ - end_; }
  void Commit(std::size_t count) noexcept { end_ += count; }

  /// Changes the capacity, if what is held fits. Invalidates earlier views.
  void Resize(std::size_t capacity) {
    if (capacity == capacity_ || end_ - begin_ > capacity) return;
    auto data = std::make_unique_for_overwrite<char[]>(capacity);
    std::memcpy(data.get(), data_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    data_ = std::move(data);
    capacity_ = capacity;
  }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weir::proxy
