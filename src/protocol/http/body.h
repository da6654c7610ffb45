#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/http/head.h"

namespace weir::http {

/// Finds the end of a body in the bytes that pass, without holding any of them.
///
/// Not thread-safe: belongs to one message.
class BodyScanner {
 public:
  enum class Trailers : std::uint8_t {
    kPass,
    /// Take stops before them, and SkipTrailers takes over: servers may take a trailer for a field
    /// of the header, by which the request was judged.
    kSkip,
  };

  /// Begins a new body.
  void Start(const Framing& framing, Trailers trailers = Trailers::kPass) noexcept;

  /// With kSkip: how many of the next bytes are trailers, which must not be passed on.
  std::size_t SkipTrailers(std::string_view bytes) noexcept;

  /// Takes the next bytes and returns how many of them belong to the body; they may be passed on
  /// unchanged. All of them do, unless the body ends among them or is malformed (see failed()).
  std::size_t Take(std::string_view bytes) noexcept;

  /// The next bytes, `expected()` of them, are the body's content, not its framing.
  bool in_data() const noexcept { return state_ == State::kLength || state_ == State::kData; }
  bool done() const noexcept { return state_ == State::kDone; }
  bool failed() const noexcept { return state_ == State::kFailed; }
  bool until_close() const noexcept { return state_ == State::kUntilClose; }
  /// Bytes that are certain to follow: a measure for how large a buffer is worthwhile.
  std::uint64_t expected() const noexcept { return remaining_; }

 private:
  enum class State : std::uint8_t {
    kDone,
    kFailed,
    kLength,
    kUntilClose,
    kSizeStart,  // the first digit of a chunk's size
    kSize,
    kSizeSpace,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,  // at the start of a line
    kTrailer,
    kTrailerLf,
    kEndLf,  // the last line end of the body
  };

  bool InTrailer(char next) const noexcept;
  State Step(char byte) noexcept;
  State AfterSize() noexcept;

  State state_ = State::kDone;
  Trailers trailers_ = Trailers::kPass;
  std::uint64_t remaining_ = 0;  // of the body, or of this chunk
  std::uint32_t overhead_ = 0;   // bytes of extensions of this chunk, or of the trailers
};

}  // namespace weir::http
