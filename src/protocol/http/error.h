#pragma once

// The one error body of the HTTP door: { "status", "error", "message", "timestamp" }.

#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "protocol/http/message.h"
#include "weir/result.h"

namespace weir::http {

/// The status that each error code is answered with.
int StatusFor(Code code) noexcept;

/// An answer with the error body; `message` is for people and names the field at fault.
Response ErrorResponse(int status, std::string_view message);
Response ErrorResponse(const Error& error);

/// The fields of the body, for an answer with further fields.
void AppendErrorFields(JsonWriter& json, int status, std::string_view message);
/// Appends only the body.
void AppendErrorBody(std::string& out, int status, std::string_view message);

}  // namespace weir::http
