#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weir {

/// Memory for many small objects that are freed together. Allocations stay in place until
/// Clear. Not thread-safe.
class Arena {
 public:
  std::string_view Copy(std::string_view text) {
    char* const to = Take(text.size(), 1);
    std::copy(text.begin(), text.end(), to);
    return {to, text.size()};
  }

  template <typename T>
  std::span<const T> Copy(std::span<const T> things) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (things.empty()) return {};
    T* const to = reinterpret_cast<T*>(Take(things.size_bytes(), alignof(T)));
    std::uninitialized_copy(things.begin(), things.end(), to);
    return {to, things.size()};
  }

  /// Frees all objects and keeps the first block for reuse.
  void Clear() noexcept {
    if (blocks_.size() > 1) blocks_.resize(1);
    used_ = 0;
  }

 private:
  static constexpr std::size_t kBlock = 4096;

  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };

  char* Take(std::size_t size, std::size_t alignment) {
    std::size_t begin = (used_ + alignment - 1) / alignment * alignment;
    if (blocks_.empty() || begin + size > blocks_.back().size) {
      const std::size_t length = std::max(size, kBlock);
      blocks_.push_back({std::make_unique_for_overwrite<char[]>(length), length});
      begin = 0;
    }
    used_ = begin + size;
    return blocks_.back().bytes.get() + begin;
  }

  std::vector<Block> blocks_;
  std::size_t used_ = 0;  // of the last block
};

}  // namespace weir
