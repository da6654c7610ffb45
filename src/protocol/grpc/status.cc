#include "protocol/grpc/status.h"

#include <algorithm>
#include <array>

#include "base/hex.h"

namespace weir::grpc {

StatusCode ToStatusCode(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
      return StatusCode::kInvalidArgument;
    case Code::kNotFound:
      return StatusCode::kNotFound;
    case Code::kAlreadyExists:
      return StatusCode::kAlreadyExists;
    case Code::kFailedPrecondition:
      return StatusCode::kFailedPrecondition;
    case Code::kUnauthenticated:
      return StatusCode::kUnauthenticated;
    case Code::kPermissionDenied:
      return StatusCode::kPermissionDenied;
    case Code::kResourceExhausted:
      return StatusCode::kResourceExhausted;
    case Code::kDeadlineExceeded:
      return StatusCode::kDeadlineExceeded;
    case Code::kUnavailable:
      return StatusCode::kUnavailable;
    case Code::kUnimplemented:
      return StatusCode::kUnimplemented;
    case Code::kInternal:
      return StatusCode::kInternal;
  }
  return StatusCode::kUnknown;
}

std::string_view StatusText(StatusCode code) noexcept {
  static constexpr std::array<std::string_view, 17> kTexts = {
      "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"};
  return kTexts[static_cast<std::size_t>(code)];
}

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      encoded.push_back(c);
    } else {
      AppendPercent(encoded, c);
    }
  }
  return encoded;
}

std::string StatusMessage(std::string_view text) {
  constexpr std::size_t kMost = 1024;
  if (text.size() <= kMost) return PercentEncode(text);
  std::size_t end = kMost;
  // Not within a UTF-8 character, which has at most three continuation bytes.
  while (end > kMost - 3 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return PercentEncode(text.substr(0, end)) + "...";
}

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) noexcept {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  std::int64_t amount = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    amount = amount * 10 + (c - '0');
  }
  // Eight digits of hours are 3.6e20 ns, more than 64 bits hold; no call lives for a century
  // anyway.
  constexpr std::int64_t kHour = 3'600'000'000'000;
  constexpr std::int64_t kMostHours = 24 * 36525;
  switch (text.back()) {
    case 'H':
      return std::chrono::nanoseconds(std::min(amount, kMostHours) * kHour);
    case 'M':
      return std::chrono::nanoseconds(std::min(amount, kMostHours * 60) * (kHour / 60));
    case 'S':
      return std::chrono::seconds(amount);
    case 'm':
      return std::chrono::milliseconds(amount);
    case 'u':
      return std::chrono::microseconds(amount);
    case 'n':
      return std::chrono::nanoseconds(amount);
    default:
      return std::nullopt;
  }
}

bool IsGrpcContentType(std::string_view text) noexcept {
  constexpr std::string_view kBase = "application/grpc";
  if (!text.starts_with(kBase)) return false;
  text.remove_prefix(kBase.size());
  constexpr std::string_view kProto = "+proto";
  if (text.starts_with(kProto)) text.remove_prefix(kProto.size());
  return text.empty() || text.front() == ';' || text.front() == ' ';
}

}  // namespace weir::grpc
