#include "proxy/websocket.h"

#include <algorithm>

namespace weir::proxy {

namespace {

constexpr std::uint8_t kContinuation = 0;
constexpr std::uint8_t kBinary = 2;  // the last of the kinds of messages
constexpr std::uint8_t kClose = 8;   // the first of the control frames
constexpr std::uint8_t kPong = 10;   // the last of them
constexpr std::uint8_t kOpcode = 0x0f;
constexpr std::uint8_t kEnd = 0x80;
constexpr std::uint8_t kMasked = 0x80;

}  // namespace

std::size_t WebSocketScanner::Take(std::string_view bytes) noexcept {
  std::size_t taken = 0;
  while (taken < bytes.size() && !failed()) {
    if (state_ == State::kPayload) {
      const std::uint64_t count = std::min<std::uint64_t>(payload_, bytes.size() - taken);
      taken += static_cast<std::size_t>(count);
      payload_ -= count;
      if (payload_ == 0) state_ = State::kStart;
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(bytes[taken]);
    if (state_ == State::kStart) {
      if (!MayBegin(byte)) {
        state_ = State::kFailed;
        return taken;
      }
      const std::uint8_t opcode = byte & kOpcode;
      if (opcode != kContinuation && opcode != kClose && !admitted_) return taken;
      admitted_ = false;
    }
    Step(byte);
    ++taken;
  }
  return taken;
}

bool WebSocketScanner::MayBegin(std::uint8_t byte) const noexcept {
  const std::uint8_t opcode = byte & kOpcode;
  if (closed_) return false;
  if (opcode >= kClose) return opcode <= kPong && (byte & kEnd) != 0;
  return opcode == kContinuation ? open_ : opcode <= kBinary && !open_;
}

void WebSocketScanner::Begin(std::uint8_t byte) noexcept {
  const std::uint8_t opcode = byte & kOpcode;
  control_ = opcode >= kClose;
  closed_ = opcode == kClose;
  if (!control_) open_ = (byte & kEnd) == 0;
  state_ = State::kLength;
}

void WebSocketScanner::Step(std::uint8_t byte) noexcept {
  switch (state_) {
    case State::kStart:
      return Begin(byte);
    case State::kLength:
      // Servers that take the mask for granted would see the next frame begin four bytes later.
      if ((byte & kMasked) == 0) {
        state_ = State::kFailed;
        return;
      }
      payload_ = byte & 0x7fU;
      if (payload_ < 126) return AfterLength();
      rest_ = payload_ == 126 ? 2 : 8;
      least_ = payload_ == 126 ? 126 : 65536;
      payload_ = 0;
      state_ = control_ ? State::kFailed : State::kExtended;
      return;
    case State::kExtended:
      // The highest bit of a length is always 0.
      if (payload_ >> 55U != 0) {
        state_ = State::kFailed;
        return;
      }
      payload_ = payload_ << 8U | byte;
      if (--rest_ > 0) return;
      if (payload_ < least_) {
        state_ = State::kFailed;
        return;
      }
      return AfterLength();
    case State::kMask:
      if (--rest_ == 0) state_ = payload_ == 0 ? State::kStart : State::kPayload;
      return;
    default:
      return;
  }
}

void WebSocketScanner::AfterLength() noexcept {
  rest_ = 4;
  state_ = State::kMask;
}

}  // namespace weir::proxy
