#include "protocol/http/error.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>

#include "base/http_status.h"
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

namespace {

void AppendEscape(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default: {
      const auto byte = static_cast<std::uint8_t>(c);
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0x0fU];
    }
  }
}

bool NeedsEscape(char c) noexcept {
  return static_cast<std::uint8_t>(c) < 0x20 || c == '"' || c == '\\' || c == '\x7f';
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;  // where the bytes begin that can be copied as they are
  for (std::size_t i = 0; i < text.size();) {
    if (NeedsEscape(text[i])) {
      out.append(text, plain, i - plain);
      AppendEscape(out, text[i]);
      plain = ++i;
      continue;
    }
    const std::size_t length = Utf8SequenceLength(text.substr(i));
    if (length == 0) {
      out.append(text, plain, i - plain);
      out += "\xef\xbf\xbd";
      plain = ++i;
      continue;
    }
    i += length;
  }
  out.append(text, plain);
  out += '"';
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
