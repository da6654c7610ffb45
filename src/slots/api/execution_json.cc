#include "slots/api/execution_json.h"

#include <simdjson.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "protocol/http/json_body.h"
#include "slots/config.h"

namespace weir::slots {
namespace {

namespace dom = simdjson::dom;

constexpr Millis kDefaultLease = 30'000;

Status ReadInstant(const dom::object& object, const char* field, Millis& into) {
  std::string text;
  if (Status s = http::ReadText(object, field, text); !s.ok()) return s;
  Result<Millis> instant = ParseInstant(text);
  if (!instant.ok()) return Invalid(std::string(field) + " " + instant.error().message);
  into = *instant;
  return {};
}

// If a misspelled retryTime were ignored, the event would become a dead letter.
constexpr std::array<std::string_view, 7> kFinishFields = {
    "eventId", "attempt", "endedAgoMs", "error", "retryTime", "counts", "maxFailures"};
constexpr std::array<std::string_view, 5> kClaimFields = {"config", "max", "leaseMs", "aheadMs",
                                                          "by"};
// If there were two lists, the reports of one would be dropped, and its events delivered again.
constexpr std::array<std::string_view, 1> kFinishesFields = {"events"};

// Everything except the ID.
Status ReadFinish(const dom::object& object, Finish& end) {
  if (Status s = http::CheckSpelling(object, kFinishFields); !s.ok()) return s;
  if (Status s = http::ReadNumber(object, "attempt", end.attempt); !s.ok()) return s;
  if (end.attempt < 1 || end.attempt > 2'000'000'000) {
    return Invalid("attempt must be the attempt of the claim, got " + std::to_string(end.attempt));
  }
  if (Status s = http::ReadNumberIfAny(object, "endedAgoMs", end.ago); !s.ok()) return s;
  if (end.ago < 0 || end.ago > kMaxLease) {
    return Invalid("endedAgoMs must be from 0 to " + std::to_string(kMaxLease) + ", got " +
                   std::to_string(end.ago));
  }
  if (!end.failed) return {};
  Status s = http::ReadTextIfAny(object, "error", end.error);
  if (s.ok() && !end.error.empty()) s = CheckName("error", end.error, kMaxErrorBytes);
  if (!s.ok()) return s;
  if (http::HasField(object, "counts") && object["counts"].get(end.counts) != simdjson::SUCCESS) {
    return Invalid("counts must be true or false");
  }
  if (http::HasField(object, "maxFailures")) {
    if (s = http::ReadNumber(object, "maxFailures", end.most_failures); !s.ok()) return s;
    if (end.most_failures < 1 || end.most_failures > kMaxFailures) {
      return Invalid("maxFailures must be from 1 to " + std::to_string(kMaxFailures) + ", got " +
                     std::to_string(end.most_failures));
    }
  }
  if (!http::HasField(object, "retryTime")) return {};
  return ReadInstant(object, "retryTime", end.retry_at.emplace());
}

void AppendInstant(JsonWriter& json, std::string_view name, Millis instant) {
  if (instant != 0) json.Field(name, FormatInstant(instant));
}

void AppendText(JsonWriter& json, std::string_view name, const std::string& text) {
  if (!text.empty()) json.Field(name, text);
}

// Begins an object with the requested and assigned times; does not end it.
void AppendSlotFields(JsonWriter& json, const Slot& slot) {
  json.BeginObject().Field("eventId", slot.event_id);
  AppendText(json, "configName", slot.config);
  AppendText(json, "tenant", slot.tenant);
  json.Field("requestedTime", FormatInstant(slot.requested))
      .Field("scheduledTime", FormatInstant(slot.scheduled))
      .Field("windowStart", FormatInstant(slot.window_start))
      .Field("delayMs", slot.scheduled - slot.requested);
}

void AppendClaimed(JsonWriter& json, const Claimed& event) {
  AppendSlotFields(json, event.slot);
  json.Field("executeAt", FormatInstant(event.execute_at))
      .Field("leaseUntil", FormatInstant(event.lease_until))
      .Field("attempt", event.attempt)
      .Field("redelivered", event.attempt > 1);
  AppendText(json, "payload", event.payload);
  json.EndObject();
}

void AppendHistory(JsonWriter& json, const std::vector<Change>& history) {
  json.Key("history").BeginArray();
  for (const Change& change : history) {
    json.BeginObject().Field("at", FormatInstant(change.at)).Field("what", change.what);
    // These details are times, which the store keeps as numbers.
    if (change.what == "cancelled" || change.what == "restored" || change.what == "rescheduled") {
      json.Field("was", FormatInstant(ParseNumber<Millis>(change.detail).value_or(0)));
    } else {
      json.Field("detail", change.detail);
    }
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

Result<ClaimRequest> ParseClaim(std::string_view body) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  ClaimRequest request;
  request.lease = kDefaultLease;
  std::int64_t max = 100;
  Status s = http::CheckSpelling(*object, kClaimFields);
  if (s.ok()) s = http::ReadText(*object, "config", request.config);
  if (s.ok()) s = http::ReadNumberIfAny(*object, "max", max);
  if (s.ok()) s = http::ReadNumberIfAny(*object, "leaseMs", request.lease);
  if (s.ok()) s = http::ReadNumberIfAny(*object, "aheadMs", request.ahead);
  if (s.ok()) s = http::ReadTextIfAny(*object, "by", request.by);
  request.max = max < 0 ? 0 : static_cast<std::size_t>(max);
  if (s.ok()) s = CheckClaim(request);
  if (!s.ok()) return s.error();
  return request;
}

Result<std::vector<Finish>> ParseFinishes(std::string_view body, bool failed) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  if (Status s = http::CheckSpelling(*object, kFinishesFields); !s.ok()) return s.error();
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
    Status s = http::ReadText(fields, "eventId", end.event_id);
    if (s.ok()) s = CheckName("eventId", end.event_id, kMaxEventIdBytes);
    if (s.ok()) s = ReadFinish(fields, end);
    if (!s.ok()) return Invalid(where + ": " + s.error().message);
  }
  if (ends.empty()) return Invalid("events must not be empty");
  return ends;
}

Result<Finish> ParseFinish(std::string_view body, std::string event_id, bool failed) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  Finish end{.event_id = std::move(event_id)};
  end.failed = failed;
  if (Status s = ReadFinish(*object, end); !s.ok()) return s.error();
  return end;
}

void AppendEvent(JsonWriter& json, const Event& event) {
  AppendSlotFields(json, event.slot);
  json.Field("status", event.state == State::kCancelled ? "CANCELLED" : "EXISTING")
      .Field("state", StateName(event.state))
      .Field("attempts", event.attempts);
  AppendInstant(json, "createdAt", event.created_at);
  AppendInstant(json, "claimedAt", event.claimed_at);
  AppendText(json, "claimedBy", event.claimed_by);
  AppendInstant(json, "leaseUntil", event.lease_until);
  AppendInstant(json, "finishedAt", event.finished_at);
  AppendText(json, "error", event.error);
  AppendText(json, "payload", event.payload);
  if (event.archived) json.Field("archived", true);
  AppendHistory(json, event.history);
  json.EndObject();
}

std::string ClaimBody(const Claim& claim) {
  std::string out;
  out.reserve(64 + claim.events.size() * 320);
  JsonWriter json(out);
  json.BeginObject().Field("now", FormatInstant(claim.now)).Field("capped", claim.capped);
  if (claim.not_after < kMaxInstant) json.Field("notAfter", FormatInstant(claim.not_after));
  json.Key("events").BeginArray();
  for (const Claimed& event : claim.events) AppendClaimed(json, event);
  json.EndArray().EndObject();
  return out;
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
    case Finished::kGivenUp:
      return "GIVEN_UP";
  }
  return "";
}

void AppendBacklog(JsonWriter& json, const Backlog& backlog, std::optional<Millis> caught_up_by) {
  json.BeginObject().Field("configName", backlog.config);
  AppendInstant(json, "now", backlog.now);
  AppendInstant(json, "windowStart", backlog.window_start);
  json.Field("maxPerWindow", backlog.cap)
      .Field("grantedInWindow", backlog.granted)
      .Field("due", backlog.due)
      .Field("dueIsMore", backlog.due >= kMaxCounted)
      .Field("scheduledLater", backlog.later)
      .Field("claimed", backlog.claimed)
      .Field("failed", backlog.failed);
  AppendInstant(json, "oldestDue", backlog.oldest_due);
  json.Field("executed", backlog.executed);
  if (caught_up_by) {
    AppendInstant(json, "caughtUpBy", *caught_up_by);
    json.Field("catchUpMs", *caught_up_by - backlog.now);
  }
  json.EndObject();
}

}  // namespace weir::slots
