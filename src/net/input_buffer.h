#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace weir::net {

/// Received bytes waiting to be parsed, in one block of memory that grows as needed and shrinks
/// again. Some bytes after the last one can be read, whatever they contain, as the JSON parser
/// requires. Not thread-safe.
class InputBuffer {
 public:
  explicit InputBuffer(std::size_t padding) : padding_(padding) {}

  std::span<char> unread() noexcept { return {bytes_.get() + begin_, end_ - begin_}; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return begin_ == end_; }

  /// Room for at least one byte at the end; unread() may move.
  std::span<char> Space() {
    if (end_ + padding_ >= capacity_) MakeRoom();
    return {bytes_.get() + end_, capacity_ - padding_ - end_};
  }
  void Commit(std::size_t n) noexcept { end_ += n; }

  void Consume(std::size_t n) noexcept {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  /// Frees memory that one large request needed, a slice at a time: freeing the pages of all of it
  /// takes the kernel a millisecond. False: call it again after others have had their turn.
  bool Shrink() {
    if (!empty() || capacity_ <= kInitial) return true;
    if (capacity_ > kSlice) {
      Resize(capacity_ - kSlice);
      return false;
    }
    bytes_.reset();
    capacity_ = 0;
    return true;
  }

  static constexpr std::size_t kSlice = std::size_t{1} << 20U;

 private:
  static constexpr std::size_t kInitial = 4096;

  struct Free {
    void operator()(char* bytes) const noexcept { std::free(bytes); }
  };

  void MakeRoom() {
    const std::size_t size = end_ - begin_;
    // Moving the bytes down is enough only if that frees much; else memory is doubled as well.
    const bool grow = begin_ <= capacity_ / 2;
    if (begin_ != 0) std::memmove(bytes_.get(), bytes_.get() + begin_, size);
    begin_ = 0;
    end_ = size;
    if (grow) Grow();
  }

  void Grow() {
    Resize(std::max(kInitial, capacity_ * 2));
    // Bytes that are read beyond the end must at least be initialized.
    std::memset(bytes_.get() + end_, 0, std::min(capacity_ - end_, padding_));
  }

  /// Uses realloc, which remaps the pages of large blocks instead of copying their contents.
  void Resize(std::size_t capacity) {
    auto* const bytes = static_cast<char*>(std::realloc(bytes_.get(), capacity));
    if (bytes == nullptr) throw std::bad_alloc();
    (void)bytes_.release();
    bytes_.reset(bytes);
    capacity_ = capacity;
  }

  const std::size_t padding_;
  std::unique_ptr<char, Free> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weir::net
