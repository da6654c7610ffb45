#pragma once

// What the API of slots answers with, and how it reads queries.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/error.h"
#include "protocol/http/message.h"
#include "protocol/http/uri.h"
#include "slots/api/slots_json.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

using http::ErrorResponse;
using http::QueryNumber;
using http::Reply;
using http::Request;
using http::Response;

/// For spreading what a store does: not negative.
std::int64_t Random();

/// "NEW", "CONFLICT", …
const char* OutcomeName(Outcome outcome) noexcept;
/// Why the event has no slot from this request; nothing if it has one.
std::string WhyNot(const Answer& answer, const Ask& ask);

Response Refuse(const std::string& message);
/// 404: there is no such active config.
Response UnknownConfig(const std::string& name);
/// To a single request. The ask's payload is not read.
Response AnswerResponse(const Answer& answer, const Ask& ask);

/// A batch request under way: which of its events are asked, and what the others are refused with.
struct BatchRequest {
  std::vector<ParsedAsk> parsed;
  std::vector<Answer> answers;  ///< of those that are asked, in order

  std::string Body() const;
};

Result<Millis> QueryInstant(std::string_view query, std::string_view key);

}  // namespace weir::slots
