#include "protocol/http/error.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>

#include "protocol/http/uri.h"

namespace weir::http {

std::string_view ReasonPhrase(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

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
