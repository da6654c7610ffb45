#pragma once

// Responses of the slots API, and how it reads queries.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/error.h"
#include "protocol/http/message.h"
#include "protocol/http/query.h"
#include "slots/api/slots_json.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

using http::ErrorResponse;
using http::Reply;
using http::Request;
using http::Response;

/// A random number, not negative, used to spread what a store does.
std::int64_t Random();

/// "NEW", "CONFLICT", …
const char* OutcomeName(Outcome outcome) noexcept;
/// Why this request gave the event no slot; empty if it did.
std::string WhyNot(const Answer& answer, const Ask& ask);

Response Refuse(const std::string& message);
/// 404: there is no such active config.
Response UnknownConfig(const std::string& name);
/// The response to a single request. Does not read the ask's payload.
Response AnswerResponse(const Answer& answer, const Ask& ask);

/// A batch request in progress: its parsed events, and the answers to those that were submitted.
struct BatchRequest {
  std::vector<ParsedAsk> parsed;
  std::vector<Answer> answers;  ///< one for each valid ask, in order

  std::string Body() const;
};

/// An error if it is absent.
Result<Millis> QueryInstant(const http::Query& query, std::string_view name);

}  // namespace weir::slots
