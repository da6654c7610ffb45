#pragma once

// Answers as bytes, appended to a connection's output. Written by hand: a message object with a map
// of fields would cost more than the check itself.

#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "filter/headers.h"
#include "limiter/limiter.h"
#include "protocol/http/message.h"

namespace weir::http {

/// The Date header's value, updated once a second. Not thread-safe.
class DateCache {
 public:
  /// "Sun, 06 Nov 1994 08:49:37 GMT"; valid until the next call.
  std::string_view At(std::time_t now);

 private:
  std::time_t second_ = -1;
  std::array<char, 32> text_{};
};

/// Headers of an answer besides its result; views, empty ones are left out.
struct Envelope {
  std::string_view date = {};
  std::string_view request_id = {};  ///< echoed if the client sent one
  std::string_view traceparent = {};
  bool close = false;
  bool head = false;  ///< headers only
};

/// Appends one header field. Every field of every response is written here: bytes of the name or
/// the value that are not printable ASCII are written as %XX, so no value can end its line or its
/// header.
void AppendField(std::string& out, std::string_view name, std::string_view value);

/// Appends the status line and the headers up to, but not including, the empty line.
void AppendHead(std::string& out, int status, std::string_view content_type, std::size_t length,
                const Envelope& envelope);

inline constexpr std::string_view kCacheControl = "Cache-Control";

/// No cache may keep the response, unless its own headers have a kCacheControl.
void AppendResponse(std::string& out, const Response& response, const Envelope& envelope);

/// One decision as JSON: {"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,
/// "resetAfterMs":100,"policy":"per-user"}, with "matched" (false: no policy applies), "never"
/// (waiting does not help), "lease", "leases", "released" and "degraded" where they apply, or
/// {"error":…,"message":…} if it could not be decided.
void AppendDecision(JsonWriter& json, const limiter::Check& check);

/// The rate-limit headers of a decided check, each with its CRLF.
void AppendLimitHeaders(std::string& out, const limiter::Check& check, filter::HeaderChoice choice);

/// The body for the client of a refused check, in the format that it accepts.
filter::Denial DenialOf(const limiter::Check& check, std::string_view accept, Nanos now);

/// Milliseconds, rounded up.
std::int64_t CeilMillis(std::chrono::nanoseconds duration) noexcept;

}  // namespace weir::http
