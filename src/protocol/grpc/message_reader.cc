#include "protocol/grpc/message_reader.h"

#include <algorithm>

namespace weir::grpc {
namespace {

constexpr std::size_t kKeptMessage = 4096;

std::size_t LengthOf(std::string_view prefix) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 1; i < 5; ++i) {
    length = (length << 8U) | static_cast<unsigned char>(prefix[i]);
  }
  return length;
}

}  // namespace

MessageReader::Step MessageReader::Next(std::string_view& bytes, std::size_t max_message_bytes) {
  if (handed_out_) {
    Reset();
  }
  const std::size_t skipped = std::min(skip_, bytes.size());
  bytes.remove_prefix(skipped);
  skip_ -= skipped;
  if (skip_ > 0) return Step::kNeedMore;
  // The prefix is checked as soon as it has arrived, so that nothing too large is ever buffered.
  if (!buffer_.empty() && buffer_.size() < kPrefix) {
    const std::size_t take = std::min(kPrefix - buffer_.size(), bytes.size());
    buffer_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
  }
  const std::string_view front = buffer_.empty() ? bytes : std::string_view(buffer_);
  if (!front.empty() && front[0] != 0) {
    return front[0] == 1 ? Step::kCompressed : Step::kBadFlag;
  }
  if (front.size() < kPrefix) {
    if (buffer_.empty()) buffer_.append(bytes);
    bytes = {};
    return Step::kNeedMore;
  }
  const std::size_t length = LengthOf(front);
  if (length > max_message_bytes) return Step::kTooLarge;
  const std::size_t whole = kPrefix + length;
  if (buffer_.empty() && bytes.size() >= whole) {
    message_ = bytes.substr(kPrefix, length);
    bytes.remove_prefix(whole);
    return Step::kMessage;
  }
  const std::size_t take = std::min(whole - buffer_.size(), bytes.size());
  buffer_.append(bytes.substr(0, take));
  bytes.remove_prefix(take);
  if (buffer_.size() < whole) return Step::kNeedMore;
  message_ = std::string_view(buffer_).substr(kPrefix);
  handed_out_ = true;
  return Step::kMessage;
}

void MessageReader::SkipLarge(std::string_view& bytes) noexcept {
  skip_ = LengthOf(buffer_.empty() ? bytes : std::string_view(buffer_));
  if (buffer_.empty()) {
    bytes.remove_prefix(kPrefix);
  } else {
    buffer_.clear();
  }
}

void MessageReader::Reset() noexcept {
  if (buffer_.capacity() > kKeptMessage) {
    buffer_ = std::string();
  } else {
    buffer_.clear();
  }
  message_ = {};
  handed_out_ = false;
  skip_ = 0;
}

}  // namespace weir::grpc
