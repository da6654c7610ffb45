#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace weir::resp {

/// Bytes that are added at the back and removed at the front, in one block of memory. Unlike
/// std::string it neither clears what it is about to overwrite nor moves what stays when the front
/// is removed.
///
/// Not thread-safe. A view of its bytes is valid until the next Reserve or Compact.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  std::string_view view() const noexcept { return {data_.get() + begin_, end_ - begin_}; }
  std::size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return begin_ == end_; }
  std::size_t capacity() const noexcept { return capacity_; }

  /// Room for `room` more bytes at the back; write there, then Commit what was written.
  char* Reserve(std::size_t room) {
    if (capacity_ - end_ < room) [[unlikely]] {
      Grow(room);
    }
    return data_.get() + end_;
  }
  /// Bytes that fit at the back without moving anything.
  std::size_t room() const noexcept { return capacity_ - end_; }
  void Commit(std::size_t count) noexcept { end_ += count; }

  void Append(std::string_view bytes) {
    if (!bytes.empty()) {
      std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
      end_ += bytes.size();
    }
  }

  /// Takes bytes off the front.
  void Consume(std::size_t count) noexcept {
    begin_ += count;
    if (begin_ == end_) {
      begin_ = end_ = 0;
    }
  }

  void Clear() noexcept { begin_ = end_ = 0; }

  /// Frees the memory if nothing is held and it is larger than `keep`: an idle connection that
  /// once saw a large burst should not keep paying for it.
  void Shrink(std::size_t keep) noexcept {
    if (empty() && capacity_ > keep) {
      data_.reset();
      begin_ = end_ = capacity_ = 0;
    }
  }

 private:
  void Grow(std::size_t room) {
    const std::size_t held = size();
    if (held + room <= capacity_ && begin_ > 0) {
      std::memmove(data_.get(), data_.get() + begin_, held);
    } else {
      const std::size_t capacity = std::max(capacity_ * 2, held + room);
      auto data = std::make_unique_for_overwrite<char[]>(capacity);
      if (held > 0) {
        std::memcpy(data.get(), data_.get() + begin_, held);
      }
      data_ = std::move(data);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<char[]> data_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace weir::resp
