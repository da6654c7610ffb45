#pragma once

// Numbers and texts of WEIR.APPLY and of reservations: varints, zigzag-encoded where a number may
// be negative (or 8 bytes fixed), and length-prefixed texts.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "algorithm/bytes.h"

namespace weir::store::wire {

inline void PutByte(std::string& out, std::uint8_t byte) { out += static_cast<char>(byte); }

inline void PutNumber(std::string& out, std::uint64_t number) {
  std::uint8_t bytes[algorithm::kMaxVarint];
  const std::uint8_t* const end = algorithm::PutVarint(bytes, number);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
}

inline void PutSigned(std::string& out, std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  PutNumber(out, (bits << 1U) ^ (number < 0 ? ~std::uint64_t{0} : 0));
}

inline void PutFixed(std::string& out, std::int64_t number) {
  std::uint8_t bytes[sizeof number];
  algorithm::Store(bytes, number);
  out.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

inline void PutText(std::string& out, std::string_view text) {
  PutNumber(out, text.size());
  out += text;
}

/// Reads what the functions above wrote. After the first malformed item, sound() is false and
/// everything reads as zero. Not thread-safe.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool sound() const noexcept { return sound_; }
  /// True if everything was read and was sound.
  bool done() const noexcept { return sound_ && bytes_.empty(); }
  void Fail() noexcept { sound_ = false; }

  std::uint8_t Byte() {
    if (!sound_ || bytes_.empty()) return Wrong();
    const auto byte = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }

  std::uint64_t Number(std::uint64_t most = ~std::uint64_t{0}) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes_.data());
    std::uint64_t number = 0;
    const std::uint8_t* const end =
        sound_ ? algorithm::GetVarint(begin, begin + bytes_.size(), number) : nullptr;
    if (end == nullptr || number > most) return Wrong();
    bytes_.remove_prefix(static_cast<std::size_t>(end - begin));
    return number;
  }

  std::int64_t Signed() {
    const std::uint64_t bits = Number();
    return static_cast<std::int64_t>((bits >> 1U) ^ ((bits & 1U) != 0 ? ~std::uint64_t{0} : 0));
  }

  std::int64_t Fixed() {
    const std::string_view bytes = Bytes(sizeof(std::int64_t));
    if (!sound_) return 0;
    return algorithm::Load<std::int64_t>(reinterpret_cast<const std::uint8_t*>(bytes.data()));
  }

  std::string_view Text(std::size_t most) { return Bytes(Number(most)); }

  /// The next `size` bytes.
  std::string_view Bytes(std::size_t size) {
    if (size > bytes_.size()) Wrong();
    if (!sound_) return {};
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }

 private:
  std::uint8_t Wrong() {
    sound_ = false;
    return 0;
  }

  std::string_view bytes_;
  bool sound_ = true;
};

}  // namespace weir::store::wire
