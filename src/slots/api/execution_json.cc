#include "slots/api/execution_json.h"

#include <simdjson.h>

#include <utility>

#include "base/json_text.h"
#include "slots/config.h"

namespace weir::slots {
namespace {

namespace dom = simdjson::dom;

constexpr Millis kDefaultLease = 30'000;

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Result<dom::object> ParseObject(dom::parser& parser, std::string_view body) {
  dom::object object;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS) {
    return Invalid("the body must be a JSON object");
  }
  return object;
}

bool Has(const dom::object& object, const char* field) {
  dom::element element;
  return object[field].get(element) == simdjson::SUCCESS && !element.is_null();
}

Status ReadText(const dom::object& object, const char* field, std::string& into) {
  std::string_view text;
  if (object[field].get(text) != simdjson::SUCCESS) {
    return Invalid(std::string(field) + (Has(object, field) ? " must be a string" : " is missing"));
  }
  into = text;
  return {};
}

Status ReadNumber(const dom::object& object, const char* field, std::int64_t& into) {
  if (object[field].get(into) == simdjson::SUCCESS) return {};
  return Invalid(std::string(field) +
                 (Has(object, field) ? " must be a whole number" : " is missing"));
}

Status ReadInstant(const dom::object& object, const char* field, Millis& into) {
  std::string text;
  if (Status s = ReadText(object, field, text); !s.ok()) return s;
  Result<Millis> instant = ParseInstant(text);
  if (!instant.ok()) return Invalid(std::string(field) + " " + instant.error().message);
  into = *instant;
  return {};
}

// Everything but the id.
Status ReadFinish(const dom::object& object, Finish& end) {
  if (Status s = ReadNumber(object, "attempt", end.attempt); !s.ok()) return s;
  if (end.attempt < 1 || end.attempt > 2'000'000'000) {
    return Invalid("attempt must be the attempt of the claim");
  }
  if (Has(object, "at")) {
    if (Status s = ReadInstant(object, "at", end.at); !s.ok()) return s;
  }
  if (!end.failed) return {};
  if (Has(object, "error")) {
    if (Status s = ReadText(object, "error", end.error); !s.ok()) return s;
    if (!end.error.empty()) {
      if (Status s = CheckName("error", end.error, kMaxErrorBytes); !s.ok()) return s;
    }
  }
  if (!Has(object, "retryTime")) return {};
  return ReadInstant(object, "retryTime", end.retry_at.emplace());
}

void AppendInstant(std::string& out, std::string_view name, Millis instant) {
  if (instant == 0) return;
  out += ',';
  AppendJsonField(out, name, FormatInstant(instant));
}

void AppendText(std::string& out, std::string_view name, const std::string& text) {
  if (text.empty()) return;
  out += ',';
  AppendJsonField(out, name, text);
}

// An open object of what is asked for and given.
void AppendSlotFields(std::string& out, const Slot& slot) {
  out += '{';
  AppendJsonField(out, "eventId", slot.event_id);
  AppendText(out, "configName", slot.config);
  AppendText(out, "tenant", slot.tenant);
  out += ",\"requestedTime\":\"" + FormatInstant(slot.requested);
  out += "\",\"scheduledTime\":\"" + FormatInstant(slot.scheduled);
  out += "\",\"windowStart\":\"" + FormatInstant(slot.window_start) + "\",";
  AppendJsonField(out, "delayMs", slot.scheduled - slot.requested);
}

void AppendClaimed(std::string& out, const Claimed& event) {
  AppendSlotFields(out, event.slot);
  out += ",\"executeAt\":\"" + FormatInstant(event.execute_at);
  out += "\",\"leaseUntil\":\"" + FormatInstant(event.lease_until) + "\",";
  AppendJsonField(out, "attempt", event.attempt);
  out += event.attempt > 1 ? ",\"redelivered\":true" : ",\"redelivered\":false";
  AppendText(out, "payload", event.payload);
  out += '}';
}

void AppendHistory(std::string& out, const std::vector<Change>& history) {
  out += ",\"history\":[";
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Change& change = history[i];
    out += i > 0 ? ",{" : "{";
    AppendJsonField(out, "at", FormatInstant(change.at));
    out += ',';
    AppendJsonField(out, "what", change.what);
    out += ',';
    // What is a time in the store is one here.
    const bool time =
        change.what == "cancelled" || change.what == "restored" || change.what == "rescheduled";
    AppendJsonField(
        out, time ? "was" : "detail",
        time ? FormatInstant(std::strtoll(change.detail.c_str(), nullptr, 10)) : change.detail);
    out += '}';
  }
  out += ']';
}

}  // namespace

Result<ClaimRequest> ParseClaim(std::string_view body) {
  dom::parser parser;
  Result<dom::object> object = ParseObject(parser, body);
  if (!object.ok()) return object.error();
  ClaimRequest request;
  request.lease = kDefaultLease;
  if (Status s = ReadText(*object, "config", request.config); !s.ok()) return s.error();
  std::int64_t max = 100;
  if (Has(*object, "max")) {
    if (Status s = ReadNumber(*object, "max", max); !s.ok()) return s.error();
  }
  request.max = max < 0 ? 0 : static_cast<std::size_t>(max);
  if (Has(*object, "leaseMs")) {
    if (Status s = ReadNumber(*object, "leaseMs", request.lease); !s.ok()) return s.error();
  }
  if (Has(*object, "aheadMs")) {
    if (Status s = ReadNumber(*object, "aheadMs", request.ahead); !s.ok()) return s.error();
  }
  if (Has(*object, "by")) {
    if (Status s = ReadText(*object, "by", request.by); !s.ok()) return s.error();
  }
  if (Status s = CheckClaim(request); !s.ok()) return s.error();
  return request;
}

Result<std::vector<Finish>> ParseFinishes(std::string_view body, bool failed) {
  dom::parser parser;
  Result<dom::object> object = ParseObject(parser, body);
  if (!object.ok()) return object.error();
  dom::array events;
  if ((*object)["events"].get(events) != simdjson::SUCCESS) {
    return Invalid("events must be an array");
  }
  std::vector<Finish> ends;
  for (const dom::element event : events) {
    const std::string where = "events[" + std::to_string(ends.size()) + "]";
    if (ends.size() == kMaxBatch) {
      return Invalid("events must not be more than " + std::to_string(kMaxBatch));
    }
    dom::object fields;
    if (event.get(fields) != simdjson::SUCCESS) return Invalid(where + " must be an object");
    Finish& end = ends.emplace_back();
    end.failed = failed;
    Status s = ReadText(fields, "eventId", end.event_id);
    if (s.ok()) s = CheckName("eventId", end.event_id, kMaxEventIdBytes);
    if (s.ok()) s = ReadFinish(fields, end);
    if (!s.ok()) return Invalid(where + ": " + s.error().message);
  }
  if (ends.empty()) return Invalid("events must not be empty");
  return ends;
}

Result<Finish> ParseFinish(std::string_view body, std::string event_id, bool failed) {
  dom::parser parser;
  Result<dom::object> object = ParseObject(parser, body);
  if (!object.ok()) return object.error();
  Finish end{.event_id = std::move(event_id)};
  end.failed = failed;
  if (Status s = ReadFinish(*object, end); !s.ok()) return s.error();
  return end;
}

void AppendEvent(std::string& out, const Event& event) {
  AppendSlotFields(out, event.slot);
  out += ',';
  AppendJsonField(out, "status", event.state == State::kCancelled ? "CANCELLED" : "EXISTING");
  out += ',';
  AppendJsonField(out, "state", StateName(event.state));
  out += ',';
  AppendJsonField(out, "attempts", event.attempts);
  AppendInstant(out, "createdAt", event.created_at);
  AppendInstant(out, "claimedAt", event.claimed_at);
  AppendText(out, "claimedBy", event.claimed_by);
  AppendInstant(out, "leaseUntil", event.lease_until);
  AppendInstant(out, "finishedAt", event.finished_at);
  AppendText(out, "error", event.error);
  AppendText(out, "payload", event.payload);
  if (event.archived) out += ",\"archived\":true";
  AppendHistory(out, event.history);
  out += '}';
}

std::string ClaimBody(const Claim& claim) {
  std::string out = "{";
  out.reserve(64 + claim.events.size() * 320);
  AppendJsonField(out, "now", FormatInstant(claim.now));
  out += claim.capped ? ",\"capped\":true" : ",\"capped\":false";
  out += ",\"events\":[";
  for (std::size_t i = 0; i < claim.events.size(); ++i) {
    if (i > 0) out += ',';
    AppendClaimed(out, claim.events[i]);
  }
  return out + "]}";
}

std::string_view FinishedName(Finished finished, bool failed) noexcept {
  switch (finished) {
    case Finished::kOk:
      return failed ? "FAILED" : "DONE";
    case Finished::kAlready:
      return "ALREADY";
    case Finished::kLost:
      return "LOST";
    case Finished::kUnknown:
      return "UNKNOWN";
  }
  return "";
}

std::string BacklogBody(const Backlog& backlog, std::optional<Millis> caught_up_by) {
  std::string out = "{";
  AppendJsonField(out, "configName", backlog.config);
  AppendInstant(out, "now", backlog.now);
  AppendInstant(out, "windowStart", backlog.window_start);
  const auto number = [&out](std::string_view name, std::int64_t value) {
    out += ',';
    AppendJsonField(out, name, value);
  };
  number("maxPerWindow", backlog.cap);
  number("grantedInWindow", backlog.granted);
  number("due", backlog.due);
  number("claimed", backlog.claimed);
  number("failed", backlog.failed);
  AppendInstant(out, "oldestDue", backlog.oldest_due);
  out += backlog.executed ? ",\"executed\":true" : ",\"executed\":false";
  if (caught_up_by) {
    AppendInstant(out, "caughtUpBy", *caught_up_by);
    number("catchUpMs", *caught_up_by - backlog.now);
  }
  return out + '}';
}

}  // namespace weir::slots
