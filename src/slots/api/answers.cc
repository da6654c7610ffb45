#include "slots/api/answers.h"

#include <optional>
#include <random>

#include "base/json_writer.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"

namespace weir::slots {
namespace {

// A request that moves an event need not name its config.
std::string Named(const std::string& config) {
  return config.empty() ? "the event's config" : "'" + config + "'";
}

std::string ExhaustedMessage(const std::string& config) {
  return "no window of " + Named(config) +
         " within the search limit has room; raise its headroom or maxPerWindow, or try again";
}

std::string CancelledMessage(const Slot& slot) {
  return "eventId: '" + slot.event_id +
         "' was cancelled; `weir slots restore` (POST /api/v1/slots/{eventId}/restore) restores it";
}

// If nothing else differs, the payload does, which the answer does not contain.
std::string ConflictMessage(const Slot& there, const Ask& ask) {
  const std::string event = "eventId: '" + there.event_id + "' belongs to ";
  if (there.config != ask.config || there.requested != ask.requested) {
    return event + "config '" + there.config + "' for " + FormatInstant(there.requested) +
           ", scheduled for " + FormatInstant(there.scheduled) +
           "; it was rescheduled since, or this is another event, which needs another ID";
  }
  const std::string what = there.tenant == ask.tenant ? "an event with another payload"
                           : there.tenant.empty()     ? "an event without a tenant"
                                                      : "tenant '" + there.tenant + "'";
  return event + what + ", scheduled for " + FormatInstant(there.scheduled) + "; use another ID";
}

std::string PastMessage(const std::string& config) {
  return "requestedTime: is in the past, which " + Named(config) + " rejects";
}

void AppendAnswer(JsonWriter& json, const Answer& answer, const Ask& ask) {
  const char* const status = OutcomeName(answer.outcome);
  if (answer.outcome == Outcome::kNew || WasThere(answer.outcome)) {
    return AppendSlot(json, answer.slot, status, WhyNot(answer, ask));
  }
  AppendRefusal(json, ask, status, WhyNot(answer, ask));
}

}  // namespace

std::int64_t Random() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return static_cast<std::int64_t>(engine() >> 1U);
}

const char* OutcomeName(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kNew:
      return "NEW";
    case Outcome::kExisting:
      return "EXISTING";
    case Outcome::kExhausted:
      return "EXHAUSTED";
    case Outcome::kUnknownConfig:
      return "UNKNOWN_CONFIG";
    case Outcome::kConflict:
      return "CONFLICT";
    case Outcome::kCancelled:
      return "CANCELLED";
    case Outcome::kPast:
      return "PAST";
    case Outcome::kUnanswered:
      return "UNAVAILABLE";
  }
  return "";
}

std::string WhyNot(const Answer& answer, const Ask& ask) {
  switch (answer.outcome) {
    case Outcome::kConflict:
      return ConflictMessage(answer.slot, ask);
    case Outcome::kCancelled:
      return CancelledMessage(answer.slot);
    case Outcome::kUnknownConfig:
      return "configName: there is no active config '" + ask.config + "'";
    case Outcome::kExhausted:
      return ExhaustedMessage(ask.config);
    case Outcome::kPast:
      return PastMessage(ask.config);
    case Outcome::kUnanswered:
      return "eventId: too many different requests for it at once; try again";
    case Outcome::kNew:
    case Outcome::kExisting:
      break;
  }
  return {};
}

Response Refuse(const std::string& message) {
  return ErrorResponse(Error{Code::kInvalidArgument, message});
}

Response UnknownConfig(const std::string& name) {
  if (name.empty()) {
    return ErrorResponse(404, "configName: the event's config is not active; name another one");
  }
  return ErrorResponse(404, "configName: there is no active config '" + name +
                                "'; create it with `weir slots config set` (POST "
                                "/admin/rate-limit/config)");
}

Response AnswerResponse(const Answer& answer, const Ask& ask) {
  switch (answer.outcome) {
    case Outcome::kConflict:
    case Outcome::kCancelled:
      return ErrorResponse(409, WhyNot(answer, ask));
    case Outcome::kUnknownConfig:
      return UnknownConfig(ask.config);
    case Outcome::kExhausted:
      return ErrorResponse(429, WhyNot(answer, ask));
    case Outcome::kPast:
      return ErrorResponse(400, WhyNot(answer, ask));
    case Outcome::kUnanswered:
      return ErrorResponse(503, WhyNot(answer, ask));
    case Outcome::kNew:
    case Outcome::kExisting:
      break;
  }
  return Response::Json(JsonText(
      [&](JsonWriter& json) { AppendSlot(json, answer.slot, OutcomeName(answer.outcome)); }));
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

Result<Millis> QueryInstant(const http::Query& query, std::string_view name) {
  const std::optional<std::string> text = query.Find(name);
  if (!text) return Error{Code::kInvalidArgument, std::string(name) + " is missing"};
  Result<Millis> instant = ParseInstant(*text);
  if (!instant.ok()) {
    return Error{Code::kInvalidArgument, std::string(name) + " " + instant.error().message};
  }
  return instant;
}

}  // namespace weir::slots
