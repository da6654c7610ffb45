#pragma once

#include <array>
#include <cstddef>

namespace weir {

/// Blocks of memory that are allocated and freed again and again, for libraries in C that allocate
/// for every frame and field. malloc keeps only a handful of free blocks per size; a burst of
/// requests needs more. Blocks above kLargest, and those beyond kKept per size, come from malloc.
///
/// Not thread-safe: one per thread. A block may be given back to another thread's recycler.
class Recycler {
 public:
  static constexpr std::size_t kLargest = 1024;
  static constexpr std::size_t kKept = 1024;

  Recycler() = default;
  ~Recycler();
  Recycler(const Recycler&) = delete;
  Recycler& operator=(const Recycler&) = delete;

  /// As malloc, free, calloc and realloc.
  void* Take(std::size_t size) noexcept;
  void GiveBack(void* block) noexcept;
  void* TakeZeroed(std::size_t count, std::size_t size) noexcept;
  void* Resize(void* block, std::size_t size) noexcept;

  /// Free blocks held.
  std::size_t held() const noexcept;

 private:
  static constexpr std::size_t kStep = 64;  // sizes are rounded up to multiples of this
  struct Free {
    Free* next;
  };
  struct Shelf {
    Free* first = nullptr;
    std::size_t count = 0;
  };

  std::array<Shelf, kLargest / kStep + 1> shelves_;
};

}  // namespace weir
