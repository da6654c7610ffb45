#include "slots/api/answers.h"

#include <optional>
#include <random>

#include "base/json_writer.h"
#include "base/number.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"

namespace weir::slots {
namespace {

std::string ExhaustedMessage(const std::string& config) {
  return "no window of '" + config +
         "' within the search limit has room; raise its headroom or maxPerWindow, or try again";
}

std::string TakenMessage(const Answer& answer) {
  const std::string event = "eventId: '" + answer.slot.event_id + "'";
  if (answer.outcome == Outcome::kCancelled) {
    return event + " was cancelled; POST /api/v1/slots/{eventId}/restore restores it";
  }
  return event + " belongs to config '" + answer.slot.config + "' for " +
         FormatInstant(answer.slot.requested) + ", scheduled for " +
         FormatInstant(answer.slot.scheduled) + "; use another ID, or reschedule it";
}

std::string PastMessage(const std::string& config) {
  return "requestedTime: is in the past, which '" + config + "' rejects";
}

void AppendAnswer(JsonWriter& json, const Answer& answer, const Ask& ask) {
  switch (answer.outcome) {
    case Outcome::kUnknownConfig:
      return AppendRefusal(json, ask, "UNKNOWN_CONFIG",
                           "configName: there is no such active config");
    case Outcome::kExhausted:
      return AppendRefusal(json, ask, "EXHAUSTED", ExhaustedMessage(ask.config));
    case Outcome::kPast:
      return AppendRefusal(json, ask, "PAST", PastMessage(ask.config));
    case Outcome::kNew:
      return AppendSlot(json, answer.slot, "NEW");
    case Outcome::kExisting:
      return AppendSlot(json, answer.slot, "EXISTING");
    case Outcome::kConflict:
      return AppendSlot(json, answer.slot, "CONFLICT", TakenMessage(answer));
    case Outcome::kCancelled:
      return AppendSlot(json, answer.slot, "CANCELLED", TakenMessage(answer));
  }
}

}  // namespace

std::int64_t Random() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return static_cast<std::int64_t>(engine() >> 1U);
}

Response Refuse(const std::string& message) {
  return ErrorResponse(Error{Code::kInvalidArgument, message});
}

Response UnknownConfig(const std::string& name) {
  return ErrorResponse(404, "configName: there is no active config '" + name +
                                "'; create it with POST /admin/rate-limit/config");
}

Response AnswerResponse(const Answer& answer, const std::string& config) {
  switch (answer.outcome) {
    case Outcome::kConflict:
    case Outcome::kCancelled:
      return ErrorResponse(409, TakenMessage(answer));
    case Outcome::kUnknownConfig:
      return UnknownConfig(config);
    case Outcome::kExhausted:
      return ErrorResponse(429, ExhaustedMessage(config));
    case Outcome::kPast:
      return ErrorResponse(400, PastMessage(config));
    case Outcome::kNew:
    case Outcome::kExisting:
      break;
  }
  return Response::Json(JsonText([&](JsonWriter& json) {
    AppendSlot(json, answer.slot, answer.outcome == Outcome::kNew ? "NEW" : "EXISTING");
  }));
}

std::string BatchRequest::Body() const {
  std::string body;
  body.reserve(parsed.size() * 224);
  JsonWriter json(body);
  json.BeginObject().Key("slots").BeginArray();
  std::size_t next = 0;
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    const ParsedAsk& one = parsed[i];
    if (one.status.ok()) {
      AppendAnswer(json, answers[next++], one.ask);
    } else {
      AppendRefusal(json, one.ask, "INVALID",
                    "events[" + std::to_string(i) + "]: " + one.status.error().message);
    }
  }
  json.EndArray().EndObject();
  return body;
}

Result<std::int64_t> QueryNumber(std::string_view query, std::string_view key, std::int64_t low,
                                 std::int64_t high, std::int64_t otherwise) {
  const std::optional<std::string> text = http::QueryValue(query, key);
  if (!text) return otherwise;
  if (const auto number = ParseNumber<std::int64_t>(*text, low, high)) return *number;
  return Error{Code::kInvalidArgument, std::string(key) + " must be a whole number from " +
                                           std::to_string(low) + " to " + std::to_string(high)};
}

Result<Millis> QueryInstant(std::string_view query, std::string_view key) {
  const std::optional<std::string> text = http::QueryValue(query, key);
  if (!text) return Error{Code::kInvalidArgument, std::string(key) + " is missing"};
  Result<Millis> instant = ParseInstant(*text);
  if (!instant.ok()) {
    return Error{Code::kInvalidArgument, std::string(key) + " " + instant.error().message};
  }
  return instant;
}

}  // namespace weir::slots
