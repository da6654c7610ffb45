#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::net {

/// Checks a TLS client's first messages before OpenSSL sees them: once a client has stated the
/// length of its first message, OpenSSL allocates that much memory, up to 128 KiB for ten bytes.
///
/// Not thread-safe: belongs to one connection.
class HelloScanner {
 public:
  /// The longest message. A client that resumes a session with large tickets sends 4 KiB.
  static constexpr std::size_t kMost = std::size_t{16} << 10U;

  /// Takes the next bytes from the client. False: one of its messages is too long.
  bool Take(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
      if (record_left_ == 0) {
        if (const auto head = record_.Take(bytes)) record_left_ = (*head)[3] << 8U | (*head)[4];
        continue;
      }
      const std::string_view piece = bytes.substr(0, record_left_);
      bytes.remove_prefix(piece.size());
      record_left_ -= piece.size();
      if (record_.bytes[0] == kHandshake && !TakeMessages(piece)) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint8_t kHandshake = 22;

  /// The fixed-size header of a record or a message, as far as it has arrived.
  template <std::size_t kSize>
  struct Head {
    std::array<std::uint8_t, kSize> bytes{};
    std::size_t seen = 0;

    /// Takes one byte of it; returns all of them if that was the last one, else null.
    const std::array<std::uint8_t, kSize>* Take(std::string_view& from) noexcept {
      bytes[seen++] = static_cast<std::uint8_t>(from.front());
      from.remove_prefix(1);
      if (seen < kSize) return nullptr;
      seen = 0;
      return &bytes;
    }
  };

  bool TakeMessages(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
      const std::size_t size = std::min(message_left_, bytes.size());
      bytes.remove_prefix(size);
      message_left_ -= size;
      if (bytes.empty()) break;
      const auto head = message_.Take(bytes);
      if (head == nullptr) continue;
      message_left_ = std::size_t{(*head)[1]} << 16U | std::size_t{(*head)[2]} << 8U | (*head)[3];
      if (message_left_ > kMost) return false;
    }
    return true;
  }

  Head<5> record_;
  Head<4> message_;
  std::size_t record_left_ = 0;
  std::size_t message_left_ = 0;
};

}  // namespace weir::net
