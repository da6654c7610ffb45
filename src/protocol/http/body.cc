#include "protocol/http/body.h"

#include <algorithm>

#include "base/percent.h"

namespace weir::http {

namespace {

constexpr std::uint32_t kMaxExtension = 1024;
constexpr std::uint32_t kMaxTrailers = 16 * 1024;
/// A chunk this large is invalid; the bound also keeps sizes from overflowing.
constexpr std::uint64_t kMaxChunk = std::uint64_t{1} << 59U;

bool Control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

void BodyScanner::Start(const Framing& framing, Trailers trailers) noexcept {
  trailers_ = trailers;
  remaining_ = framing.length;
  overhead_ = 0;
  switch (framing.kind) {
    case Framing::Kind::kNone:
      state_ = State::kDone;
      break;
    case Framing::Kind::kLength:
      state_ = State::kLength;
      break;
    case Framing::Kind::kChunked:
      state_ = State::kSizeStart;
      break;
    case Framing::Kind::kUntilClose:
      state_ = State::kUntilClose;
      break;
  }
}

std::size_t BodyScanner::Take(std::string_view bytes) noexcept {
  if (state_ == State::kUntilClose) return bytes.size();
  std::size_t taken = 0;
  while (taken < bytes.size() && !done() && !failed()) {
    if (trailers_ == Trailers::kSkip && InTrailer(bytes[taken])) break;
    if (state_ != State::kLength && state_ != State::kData) {
      state_ = Step(bytes[taken++]);
      continue;
    }
    const std::uint64_t count = std::min<std::uint64_t>(remaining_, bytes.size() - taken);
    taken += static_cast<std::size_t>(count);
    remaining_ -= count;
    if (remaining_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kDataCr;
  }
  return taken;
}

bool BodyScanner::InTrailer(char next) const noexcept {
  return state_ == State::kTrailer || state_ == State::kTrailerLf ||
         (state_ == State::kTrailerStart && next != '\r');
}

std::size_t BodyScanner::SkipTrailers(std::string_view bytes) noexcept {
  std::size_t skipped = 0;
  while (skipped < bytes.size() && InTrailer(bytes[skipped])) state_ = Step(bytes[skipped++]);
  return skipped;
}

BodyScanner::State BodyScanner::AfterSize() noexcept {
  overhead_ = 0;
  return remaining_ == 0 ? State::kTrailerStart : State::kData;
}

BodyScanner::State BodyScanner::Step(char byte) noexcept {
  switch (state_) {
    case State::kSizeStart:
    case State::kSize: {
      const int digit = HexDigit(byte);
      if (digit >= 0) {
        const std::uint64_t before = state_ == State::kSizeStart ? 0 : remaining_;
        // Leading zeros must not go on forever.
        if (before >= kMaxChunk || ++overhead_ > 16) return State::kFailed;
        remaining_ = before * 16 + static_cast<std::uint64_t>(digit);
        return State::kSize;
      }
      if (state_ == State::kSizeStart) return State::kFailed;
      if (byte == '\r') return State::kSizeLf;
      if (byte == ';') return State::kExtension;
      return byte == ' ' || byte == '\t' ? State::kSizeSpace : State::kFailed;
    }
    case State::kSizeSpace:
      // Some servers take digits after a space as part of the size.
      if (byte == '\r') return State::kSizeLf;
      if (byte == ';') return State::kExtension;
      if (byte != ' ' && byte != '\t') return State::kFailed;
      return ++overhead_ > kMaxExtension ? State::kFailed : State::kSizeSpace;
    case State::kExtension:
      if (byte == '\r') return State::kSizeLf;
      return Control(byte) || ++overhead_ > kMaxExtension ? State::kFailed : State::kExtension;
    case State::kSizeLf:
      return byte == '\n' ? AfterSize() : State::kFailed;
    case State::kDataCr:
      return byte == '\r' ? State::kDataLf : State::kFailed;
    case State::kDataLf:
      overhead_ = 0;
      return byte == '\n' ? State::kSizeStart : State::kFailed;
    case State::kTrailerStart:
      if (byte == '\r') return State::kEndLf;
      return Control(byte) || byte == ' ' || byte == '\t' || byte == ':' ? State::kFailed
                                                                         : State::kTrailer;
    case State::kTrailer:
      if (byte == '\r') return State::kTrailerLf;
      return Control(byte) || ++overhead_ > kMaxTrailers ? State::kFailed : State::kTrailer;
    case State::kTrailerLf:
      // The empty line counts too, so that lines of one letter do not go on forever.
      return byte == '\n' && ++overhead_ <= kMaxTrailers ? State::kTrailerStart : State::kFailed;
    case State::kEndLf:
      return byte == '\n' ? State::kDone : State::kFailed;
    default:
      return State::kFailed;
  }
}

}  // namespace weir::http
