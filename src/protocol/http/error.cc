#include "protocol/http/error.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>

#include "base/http_status.h"
#include "base/json_text.h"
#include "protocol/http/uri.h"

namespace weir::http {

int StatusFor(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
      return 409;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kResourceExhausted:
      return 429;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kUnavailable:
      return 503;
    case Code::kUnimplemented:
      return 501;
    case Code::kInternal:
      break;
  }
  return 500;
}

void AppendErrorBody(std::string& out, int status, std::string_view message) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> timestamp{};
  const std::size_t size =
      std::strftime(timestamp.data(), timestamp.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  out += "{\"status\":";
  out += std::to_string(status);
  out += ",\"error\":";
  AppendJsonString(out, ReasonPhrase(status));
  out += ",\"message\":";
  AppendJsonString(out, message);
  out += ",\"timestamp\":\"";
  out.append(timestamp.data(), size);
  out += "\"}";
}

Response ErrorResponse(int status, std::string_view message) {
  Response response;
  response.status = status;
  AppendErrorBody(response.body, status, message);
  return response;
}

Response ErrorResponse(const Error& error) {
  return ErrorResponse(StatusFor(error.code), error.message);
}

}  // namespace weir::http
