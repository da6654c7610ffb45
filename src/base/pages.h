#pragma once

#include <cstddef>

namespace weir {

/// A zeroed block of memory in huge pages where the system grants them: a lookup in a large table
/// then costs one miss instead of two. Untouched parts take no memory. Movable, not copyable.
class Pages {
 public:
  Pages() = default;
  /// Throws std::bad_alloc.
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir
