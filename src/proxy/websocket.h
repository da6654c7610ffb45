#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::proxy {

/// Finds where messages begin among the bytes that a WebSocket client sends (RFC 6455, section
/// 5.2), without holding any of them. Pings and pongs are messages, too: the server answers or
/// reads each. The frames that continue a message and the one that closes the connection are not.
/// Frames that the RFC forbids are an error: some server could take one for a message, or see the
/// next frame begin elsewhere.
///
/// Not thread-safe: belongs to one connection.
class WebSocketScanner {
 public:
  /// How many of the next bytes may pass: all of them, up to the first byte of a message that has
  /// not been admitted.
  std::size_t Take(std::string_view bytes) noexcept;

  /// Lets the message pass that begins with the next byte.
  void Admit() noexcept { admitted_ = true; }
  /// The bytes are not those of a WebSocket client.
  bool failed() const noexcept { return state_ == State::kFailed; }

 private:
  enum class State : std::uint8_t { kStart, kLength, kExtended, kMask, kPayload, kFailed };

  bool MayBegin(std::uint8_t byte) const noexcept;
  void Step(std::uint8_t byte) noexcept;
  void Begin(std::uint8_t byte) noexcept;
  void AfterLength() noexcept;

  State state_ = State::kStart;
  bool admitted_ = false;
  bool control_ = false;       // the frame is a ping, a pong or the close
  bool open_ = false;          // a message has begun and not ended
  bool closed_ = false;        // the client has announced that it sends no more
  std::uint64_t least_ = 0;    // a length below this has a shorter form
  std::uint32_t rest_ = 0;     // bytes of the length or the mask still to come
  std::uint64_t payload_ = 0;  // bytes of the frame still to come
};

}  // namespace weir::proxy
