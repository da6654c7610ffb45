#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "algorithm/state.h"
#include "weir/quota.h"

namespace weir::engine {

/// One heap block: a key's text, for keys whose state is in their slot. Immutable.
class KeyText {
 public:
  static KeyText* Make(std::string_view key) {
    void* memory = ::operator new(sizeof(KeyText) + key.size());
    return new (memory) KeyText(key);
  }
  static void Free(KeyText* text) noexcept { ::operator delete(text); }

  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), size_};
  }

 private:
  explicit KeyText(std::string_view key) noexcept : size_(static_cast<std::uint32_t>(key.size())) {
    if (!key.empty()) std::memcpy(this + 1, key.data(), key.size());
  }

  std::uint32_t size_;
};

/// One heap block: the state bytes of a key and, if kept, its text. Guarded by its shard's lock.
class Box {
 public:
  static Box* Make(Algorithm algorithm, std::string_view key, std::uint32_t capacity) {
    void* memory = ::operator new(sizeof(Box) + key.size() + capacity);
    return new (memory) Box(algorithm, key, capacity);
  }
  static void Free(Box* box) noexcept { ::operator delete(box); }

  /// A box with the same content and another capacity, which must suffice; frees this one.
  static Box* Resized(Box* box, std::uint32_t capacity) {
    Box* next = Make(box->algorithm_, box->key(), capacity);
    next->Assign(box->state());
    Free(box);
    return next;
  }

  Algorithm algorithm() const noexcept { return algorithm_; }
  std::string_view key() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), key_size_};
  }
  algorithm::State state() noexcept { return {bytes() + key_size_, size_, capacity_}; }
  /// After a step on state(): stores the new size.
  void set_size(std::uint32_t size) noexcept { size_ = size; }
  /// Requires capacity() >= from.size.
  void Assign(const algorithm::State& from) noexcept {
    if (from.size != 0) std::memcpy(bytes() + key_size_, from.data, from.size);
    size_ = from.size;
  }
  std::uint32_t capacity() const noexcept { return capacity_; }
  std::uint32_t size() const noexcept { return size_; }

 private:
  Box(Algorithm algorithm, std::string_view key, std::uint32_t capacity) noexcept
      : capacity_(capacity),
        key_size_(static_cast<std::uint32_t>(key.size())),
        algorithm_(algorithm) {
    if (!key.empty()) std::memcpy(bytes(), key.data(), key.size());
  }
  std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }

  std::uint32_t size_ = 0;
  std::uint32_t capacity_;
  std::uint32_t key_size_;
  Algorithm algorithm_;
};

}  // namespace weir::engine
