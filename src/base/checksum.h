#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

/// A running checksum (FNV-1a, 64 bits): detects damage, not forgery.
class Checksum {
 public:
  void Add(std::string_view bytes) noexcept {
    for (const char c : bytes) sum_ = (sum_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0xCBF29CE484222325ULL;
};

}  // namespace weir
