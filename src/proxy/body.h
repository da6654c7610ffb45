#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/head.h"

namespace weir::proxy {

/// Finds the end of a body in the bytes that pass, without holding any of them.
///
/// Not thread-safe: belongs to one message.
class BodyScanner {
 public:
  /// Begins a new body.
  void Start(const Framing& framing) noexcept;

  /// Takes the next bytes and says how many of them belong to the body; they may be passed on as
  /// they are. All of them do, unless the body ends among them or is malformed (then see failed()).
  std::size_t Take(std::string_view bytes) noexcept;

  bool done() const noexcept { return state_ == State::kDone; }
  bool failed() const noexcept { return state_ == State::kFailed; }
  bool until_close() const noexcept { return state_ == State::kUntilClose; }
  /// Bytes that are certain to follow: a measure for how large a buffer pays.
  std::uint64_t expected() const noexcept { return remaining_; }

 private:
  enum class State : std::uint8_t {
    kDone,
    kFailed,
    kLength,
    kUntilClose,
    kSizeStart,  // the first digit of a chunk's size
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,  // at the start of a line
    kTrailer,
    kTrailerLf,
    kEndLf,  // the last line of all
  };

  State Step(char byte) noexcept;
  State AfterSize() noexcept;

  State state_ = State::kDone;
  std::uint64_t remaining_ = 0;  // of the body, or of this chunk
  std::uint32_t overhead_ = 0;   // bytes of extensions of this chunk, or of the trailers
};

}  // namespace weir::proxy
