#include "protocol/http/error.h"

#include <ctime>

#include "base/http_status.h"
#include "base/instant.h"
#include "base/json_writer.h"

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

void AppendErrorFields(JsonWriter& json, int status, std::string_view message) {
  json.Field("status", status)
      .Field("error", ReasonPhrase(status))
      .Field("message", message)
      .Field("timestamp", FormatInstant(std::time(nullptr) * Nanos{1'000'000'000}));
}

void AppendErrorBody(std::string& out, int status, std::string_view message) {
  JsonWriter json(out);
  json.BeginObject();
  AppendErrorFields(json, status, message);
  json.EndObject();
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
