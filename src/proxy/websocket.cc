#include "proxy/websocket.h"

#include <algorithm>

namespace weir::proxy {

namespace {

constexpr std::uint8_t kContinuation = 0;
constexpr std::uint8_t kClose = 8;

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
      const std::uint8_t opcode = byte & 0x0fU;
      if (opcode != kContinuation && opcode != kClose && !admitted_) {
        waits_ = true;
        return taken;
      }
      admitted_ = false;
    }
    Step(byte);
    ++taken;
  }
  return taken;
}

void WebSocketScanner::Step(std::uint8_t byte) noexcept {
  switch (state_) {
    case State::kStart:
      state_ = State::kLength;
      return;
    case State::kLength:
      masked_ = (byte & 0x80U) != 0;
      payload_ = byte & 0x7fU;
      if (payload_ < 126) return AfterLength();
      rest_ = payload_ == 126 ? 2 : 8;
      payload_ = 0;
      state_ = State::kExtended;
      return;
    case State::kExtended:
      // The highest bit of a length is always 0.
      if (payload_ >> 55U != 0) {
        state_ = State::kFailed;
        return;
      }
      payload_ = payload_ << 8U | byte;
      if (--rest_ == 0) AfterLength();
      return;
    case State::kMask:
      if (--rest_ == 0) state_ = payload_ == 0 ? State::kStart : State::kPayload;
      return;
    default:
      return;
  }
}

void WebSocketScanner::AfterLength() noexcept {
  rest_ = 4;
  if (masked_) {
    state_ = State::kMask;
  } else {
    state_ = payload_ == 0 ? State::kStart : State::kPayload;
  }
}

}  // namespace weir::proxy
