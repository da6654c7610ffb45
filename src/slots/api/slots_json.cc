#include "slots/api/slots_json.h"

#include <simdjson.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/json_writer.h"
#include "protocol/http/json_body.h"
#include "slots/api/calendar_json.h"
#include "slots/config.h"

namespace weir::slots {
namespace {

namespace dom = simdjson::dom;

// Reads a name; an invalid one is not stored.
Status ReadName(const dom::object& object, const char* field, std::size_t max_bytes,
                std::string& into) {
  std::string name;
  Status s = http::ReadText(object, field, name);
  if (s.ok()) s = CheckName(field, name, max_bytes);
  if (s.ok()) into = std::move(name);
  return s;
}

Status ReadRequestedTime(const dom::object& object, Millis& requested) {
  std::string text;
  if (Status s = http::ReadText(object, "requestedTime", text); !s.ok()) return s;
  Result<Millis> instant = ParseInstant(text);
  if (!instant.ok()) return Invalid("requestedTime " + instant.error().message);
  requested = *instant;
  return {};
}

// If a misspelled payload or time were ignored, it would be a different payment.
constexpr std::array<std::string_view, 5> kAskFields = {"eventId", "configName", "requestedTime",
                                                        "tenant", "payload"};

// If there were two lists, the events of one would be dropped.
constexpr std::array<std::string_view, 1> kBatchFields = {"events"};

// Fills in what it can even if something is wrong, so that a refusal can name the event.
Status ReadAsk(const dom::object& object, Ask& ask) {
  Status s = ReadName(object, "eventId", slots::kMaxEventIdBytes, ask.event_id);
  if (s.ok()) s = ReadName(object, "configName", slots::kMaxNameBytes, ask.config);
  if (s.ok()) s = http::CheckSpelling(object, kAskFields);
  std::string tenant;
  if (s.ok()) s = http::ReadTextIfAny(object, "tenant", tenant);
  if (s.ok() && !tenant.empty()) s = CheckName("tenant", tenant, slots::kMaxNameBytes);
  if (!s.ok()) return s;
  ask.tenant = std::move(tenant);
  s = http::ReadTextIfAny(object, "payload", ask.payload);
  if (s.ok()) s = CheckPayload(ask.payload);
  if (!s.ok()) return s;
  return ReadRequestedTime(object, ask.requested);
}

Status ReadTenants(const dom::object& object, Config& config) {
  dom::element element;
  if (object["tenants"].get(element) != simdjson::SUCCESS || element.is_null()) return {};
  dom::object tenants;
  if (element.get(tenants) != simdjson::SUCCESS) {
    return Invalid("tenants must be an object of names and weights");
  }
  for (const auto& [name, weight] : tenants) {
    std::int64_t number = 0;
    if (weight.get(number) != simdjson::SUCCESS) {
      return Invalid("tenants." + std::string(name) + " must be a whole number");
    }
    if (config.tenants.size() > slots::kMaxTenants) break;  // CheckConfig rejects it
    config.tenants.emplace_back(name, number);
  }
  return {};
}

}  // namespace

Result<Ask> ParseAsk(std::string_view body) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  Ask ask;
  if (Status s = ReadAsk(*object, ask); !s.ok()) return s.error();
  return ask;
}

Result<std::vector<ParsedAsk>> ParseBatch(std::string_view body) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  if (Status s = http::CheckSpelling(*object, kBatchFields); !s.ok()) return s.error();
  dom::array events;
  if ((*object)["events"].get(events) != simdjson::SUCCESS)
    return Invalid("events must be an array");
  if (events.size() == 0) return Invalid("events must not be empty");
  std::vector<ParsedAsk> asks;
  for (dom::element event : events) {
    if (asks.size() == slots::kMaxBatch) {
      return Invalid("events must not be more than " + std::to_string(slots::kMaxBatch));
    }
    ParsedAsk& parsed = asks.emplace_back();
    dom::object fields;
    parsed.status = event.get(fields) == simdjson::SUCCESS ? ReadAsk(fields, parsed.ask)
                                                           : Status(Invalid("must be an object"));
  }
  return asks;
}

Result<MoveRequest> ParseReschedule(std::string_view body, std::string event_id) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  MoveRequest move{.event_id = std::move(event_id)};
  Status s = http::CheckSpelling(*object, kAskFields);
  if (!s.ok()) return s.error();
  if (http::HasField(*object, "configName")) {
    s = ReadName(*object, "configName", slots::kMaxNameBytes, move.config);
  }
  if (s.ok()) s = ReadRequestedTime(*object, move.requested.emplace());
  if (!s.ok()) return s.error();
  return move;
}

Result<Config> ParseConfig(std::string_view body) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  // The service sets the last three; accepted so that its answers can be sent back unchanged.
  Status s =
      http::CheckFields(*object, "a config",
                        {"configName", "windowSize", "maxPerWindow", "headroom", "fairWindows",
                         "tenants", "calendar", "past", "version", "active", "createdAt"});
  if (!s.ok()) return s.error();
  Config config;
  s = http::ReadText(*object, "configName", config.name);
  if (!s.ok()) return s.error();
  std::string size;
  s = http::ReadText(*object, "windowSize", size);
  if (!s.ok()) return Invalid(s.error().message + "; write it like \"PT4S\" or \"4s\"");
  Result<Millis> duration = ParseDuration(size);
  if (!duration.ok()) return Invalid("windowSize " + duration.error().message);
  config.window_size = *duration;
  s = http::ReadNumber(*object, "maxPerWindow", config.max_per_window);
  config.headroom = slots::kDefaultHeadroom;
  if (s.ok()) s = http::ReadNumberIfAny(*object, "headroom", config.headroom);
  config.fair_windows = config.headroom;
  if (s.ok()) s = http::ReadNumberIfAny(*object, "fairWindows", config.fair_windows);
  if (s.ok()) s = ReadTenants(*object, config);
  if (s.ok()) s = ReadTiming(*object, config);
  if (!s.ok()) return s.error();
  return CheckConfig(std::move(config));
}

void AppendSlot(JsonWriter& json, const Slot& slot, std::string_view status,
                std::string_view message) {
  json.BeginObject().Field("eventId", slot.event_id).Field("configName", slot.config);
  if (!slot.tenant.empty()) json.Field("tenant", slot.tenant);
  json.Field("requestedTime", FormatInstant(slot.requested))
      .Field("scheduledTime", FormatInstant(slot.scheduled))
      .Field("windowStart", FormatInstant(slot.window_start))
      .Field("delayMs", slot.scheduled - slot.requested)
      .Field("status", status);
  if (!message.empty()) json.Field("message", message);
  json.EndObject();
}

void AppendRefusal(JsonWriter& json, const Ask& ask, std::string_view status,
                   std::string_view message) {
  json.BeginObject()
      .Field("eventId", ask.event_id)
      .Field("configName", ask.config)
      .Field("status", status)
      .Field("message", message)
      .EndObject();
}

void AppendConfig(JsonWriter& json, const Config& config) {
  json.BeginObject()
      .Field("configName", config.name)
      .Field("version", config.version)
      .Field("windowSize", FormatDuration(config.window_size))
      .Field("maxPerWindow", config.max_per_window)
      .Field("headroom", config.headroom);
  if (!config.tenants.empty()) {
    json.Field("fairWindows", config.fair_windows).Key("tenants").BeginObject();
    for (const auto& [name, weight] : config.tenants) json.AnyKey(name).Value(weight);
    json.EndObject();
  }
  AppendTiming(json, config);
  json.Field("active", config.active)
      .Field("createdAt", FormatInstant(config.created_at))
      .EndObject();
}

std::string ConfigBody(const Config& config) {
  return JsonText([&](JsonWriter& json) { AppendConfig(json, config); });
}

void AppendWindow(JsonWriter& json, const WindowLoad& window) {
  json.BeginObject().Field("windowStart", FormatInstant(window.start)).Field("count", window.count);
  if (window.carried > 0) json.Field("carried", window.carried);
  json.Field("status", window.open ? "OPEN" : "CLOSED").EndObject();
}

std::string ForecastBody(const Forecast& forecast, const Config& config, Millis requested,
                         std::int64_t count) {
  return JsonObject([&](JsonWriter& json) {
    json.Field("configName", config.name)
        .Field("requestedTime", FormatInstant(requested))
        .Field("count", count)
        .Field("unplaced", forecast.unplaced())
        .Field("windows", forecast.windows())
        .Field("firstWindow", FormatInstant(forecast.first_window()))
        .Field("lastWindow", FormatInstant(forecast.last_window()))
        .Field("finishedBy", FormatInstant(forecast.finished_by()));
  });
}

std::string FindingsBody(const Findings& findings) {
  return JsonObject([&](JsonWriter& json) {
    json.Field("clean", findings.problems == 0)
        .Field("windows", findings.windows)
        .Field("slots", findings.slots)
        .Field("problems", findings.problems)
        .Key("examples")
        .BeginArray();
    for (const std::string& example : findings.examples) json.Value(example);
    json.EndArray();
  });
}

}  // namespace weir::slots
