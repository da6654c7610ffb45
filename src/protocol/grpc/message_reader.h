#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::grpc {

/// Cuts the bytes of a call's DATA frames into messages: one flag byte, four bytes of length, the
/// message; in pieces of any size. A message that arrives whole is passed on without a copy.
///
/// Not thread-safe. Bounded: never holds more than one message of at most `max_message_bytes`.
class MessageReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,    ///< all bytes taken, no complete message left
    kMessage,     ///< message() is the next one, until the next call
    kTooLarge,    ///< announces more than allowed; no further use except SkipLarge
    kCompressed,  ///< the compressed flag is set
    kBadFlag,     ///< the flag byte is neither 0 nor 1
  };

  /// Takes the next message from the front of `bytes`, and removes what it took.
  Step Next(std::string_view& bytes, std::size_t max_message_bytes);
  /// After kTooLarge: skips that message as its bytes arrive; then the next one is read.
  void SkipLarge(std::string_view& bytes) noexcept;

  std::string_view message() const noexcept { return message_; }
  /// Bytes of an incomplete message (its prefix included).
  std::size_t buffered() const noexcept { return buffer_.size(); }
  bool midway() const noexcept { return !buffer_.empty() || skip_ > 0; }

  /// Makes it ready for another call. Keeps a buffer of ordinary size.
  void Reset() noexcept;

 private:
  static constexpr std::size_t kPrefix = 5;

  std::string buffer_;
  std::string_view message_;
  bool handed_out_ = false;  // message_ is in buffer_
  std::size_t skip_ = 0;     // bytes of a message that is being skipped
};

}  // namespace weir::grpc
