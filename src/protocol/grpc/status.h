#pragma once

// The status of a call and the other small things that gRPC writes into HTTP/2 header fields.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::grpc {

/// The codes of gRPC, with their numbers on the wire.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

StatusCode ToStatusCode(Code code) noexcept;

/// The number as text, as `grpc-status` carries it. A literal.
std::string_view StatusText(StatusCode code) noexcept;

/// The form of `grpc-message`: bytes outside printable ASCII, and '%', as %XX.
std::string PercentEncode(std::string_view text);

/// A text as `grpc-message` carries it: long ones are cut, since nghttp2 refuses to send a field of
/// more than 64 KiB, and the caller would wait forever.
std::string StatusMessage(std::string_view text);

/// The value of `grpc-timeout`: one to eight digits and a unit (H M S m u n). Nothing if malformed.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) noexcept;

/// True for application/grpc, application/grpc+proto, and either with parameters.
bool IsGrpcContentType(std::string_view text) noexcept;

}  // namespace weir::grpc
