#include "base/recycler.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace weir {
namespace {

/// Precedes each block. As large as malloc's alignment, so that the block is aligned too.
struct alignas(std::max_align_t) Head {
  std::size_t size;  // of the block, without this
};

Head* HeadOf(void* block) noexcept { return static_cast<Head*>(block) - 1; }

}  // namespace

Recycler::~Recycler() {
  for (Shelf& shelf : shelves_) {
    while (shelf.first != nullptr) {
      Free* const block = shelf.first;
      shelf.first = block->next;
      std::free(HeadOf(block));
    }
  }
}

void* Recycler::Take(std::size_t size) noexcept {
  if (size <= kLargest) {
    const std::size_t steps = std::max<std::size_t>((size + kStep - 1) / kStep, 1);
    Shelf& shelf = shelves_[steps];
    if (shelf.first != nullptr) {
      Free* const block = shelf.first;
      shelf.first = block->next;
      --shelf.count;
      return block;
    }
    size = steps * kStep;
  }
  if (size > SIZE_MAX - sizeof(Head)) return nullptr;
  auto* const head = static_cast<Head*>(std::malloc(sizeof(Head) + size));
  if (head == nullptr) return nullptr;
  head->size = size;
  return head + 1;
}

void Recycler::GiveBack(void* block) noexcept {
  if (block == nullptr) return;
  Head* const head = HeadOf(block);
  if (head->size <= kLargest) {
    Shelf& shelf = shelves_[head->size / kStep];
    if (shelf.count < kKept) {
      auto* const free_block = static_cast<Free*>(block);
      free_block->next = shelf.first;
      shelf.first = free_block;
      ++shelf.count;
      return;
    }
  }
  std::free(head);
}

void* Recycler::TakeZeroed(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* const block = Take(bytes);
  if (block != nullptr) std::memset(block, 0, bytes);
  return block;
}

void* Recycler::Resize(void* block, std::size_t size) noexcept {
  if (block == nullptr) return Take(size);
  const std::size_t before = HeadOf(block)->size;
  if (size <= before && before <= kLargest) return block;
  void* const larger = Take(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, block, std::min(before, size));
  GiveBack(block);
  return larger;
}

std::size_t Recycler::held() const noexcept {
  std::size_t sum = 0;
  for (const Shelf& shelf : shelves_) sum += shelf.count;
  return sum;
}

}  // namespace weir
