#include "slots/api/slots_json.h"

#include <simdjson.h>

#include <utility>

#include "base/error.h"
#include "base/json_writer.h"
#include "protocol/http/json_body.h"
#include "slots/api/calendar_json.h"
#include "slots/config.h"

namespace weir::slots {
namespace {

namespace dom = simdjson::dom;

Result<std::optional<std::string_view>> OptionalText(const dom::object& object, const char* field) {
  dom::element element;
  if (object[field].get(element) != simdjson::SUCCESS || element.is_null()) {
    return std::optional<std::string_view>();
  }
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS)
    return Invalid(std::string(field) + " must be a string");
  return std::optional<std::string_view>(text);
}

Result<std::string_view> Text(const dom::object& object, const char* field) {
  Result<std::optional<std::string_view>> text = OptionalText(object, field);
  if (!text.ok()) return text.error();
  if (!text->has_value()) return Invalid(std::string(field) + " is missing");
  return **text;
}

Result<std::optional<std::int64_t>> OptionalNumber(const dom::object& object, const char* field) {
  dom::element element;
  if (object[field].get(element) != simdjson::SUCCESS || element.is_null()) {
    return std::optional<std::int64_t>();
  }
  std::int64_t number = 0;
  if (element.get(number) != simdjson::SUCCESS) {
    return Invalid(std::string(field) + " must be a whole number");
  }
  return std::optional<std::int64_t>(number);
}

Result<Millis> RequestedTime(const dom::object& object) {
  Result<std::string_view> text = Text(object, "requestedTime");
  if (!text.ok()) return text.error();
  Result<Millis> instant = ParseInstant(*text);
  if (!instant.ok()) return Invalid("requestedTime " + instant.error().message);
  return instant;
}

// Fills what it can even if something is wrong, so that a refusal can name the event.
Status ReadAsk(const dom::object& object, Ask& ask) {
  Result<std::string_view> event = Text(object, "eventId");
  if (!event.ok()) return event.error();
  Status s = CheckName("eventId", *event, slots::kMaxEventIdBytes);
  if (!s.ok()) return s;
  ask.event_id = *event;
  Result<std::string_view> config = Text(object, "configName");
  if (!config.ok()) return config.error();
  s = CheckName("configName", *config, slots::kMaxNameBytes);
  if (!s.ok()) return s;
  ask.config = *config;
  Result<std::optional<std::string_view>> tenant = OptionalText(object, "tenant");
  if (!tenant.ok()) return tenant.error();
  if (tenant->has_value() && !(*tenant)->empty()) {
    s = CheckName("tenant", **tenant, slots::kMaxNameBytes);
    if (!s.ok()) return s;
    ask.tenant = **tenant;
  }
  Result<std::optional<std::string_view>> payload = OptionalText(object, "payload");
  if (!payload.ok()) return payload.error();
  if (payload->has_value()) ask.payload = **payload;
  if (ask.payload.size() > slots::kMaxPayloadBytes) {
    return Invalid("payload must not be longer than " + std::to_string(slots::kMaxPayloadBytes) +
                   " bytes");
  }
  if (ask.payload.find('\0') != std::string::npos) {
    return Invalid("payload must not contain the character U+0000");
  }
  Result<Millis> requested = RequestedTime(object);
  if (!requested.ok()) return requested.error();
  ask.requested = *requested;
  return {};
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
    if (config.tenants.size() > slots::kMaxTenants) break;  // CheckConfig refuses it
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

Result<Ask> ParseReschedule(std::string_view body, std::string event_id) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  Ask ask{.event_id = std::move(event_id)};
  Result<std::optional<std::string_view>> config = OptionalText(*object, "configName");
  if (!config.ok()) return config.error();
  if (config->has_value()) {
    Status s = CheckName("configName", **config, slots::kMaxNameBytes);
    if (!s.ok()) return s.error();
    ask.config = **config;
  }
  Result<Millis> requested = RequestedTime(*object);
  if (!requested.ok()) return requested.error();
  ask.requested = *requested;
  return ask;
}

Result<Config> ParseConfig(std::string_view body) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  Config config;
  Result<std::string_view> name = Text(*object, "configName");
  if (!name.ok()) return name.error();
  config.name = *name;
  Result<std::string_view> size = Text(*object, "windowSize");
  if (!size.ok()) return Invalid(size.error().message + ", such as \"PT4S\" or \"4s\"");
  Result<Millis> duration = ParseDuration(*size);
  if (!duration.ok()) return Invalid("windowSize " + duration.error().message);
  config.window_size = *duration;
  Result<std::optional<std::int64_t>> max = OptionalNumber(*object, "maxPerWindow");
  if (!max.ok()) return max.error();
  if (!max->has_value()) return Invalid("maxPerWindow is missing");
  config.max_per_window = **max;
  Result<std::optional<std::int64_t>> headroom = OptionalNumber(*object, "headroom");
  if (!headroom.ok()) return headroom.error();
  config.headroom = headroom->value_or(slots::kDefaultHeadroom);
  Result<std::optional<std::int64_t>> fair = OptionalNumber(*object, "fairWindows");
  if (!fair.ok()) return fair.error();
  config.fair_windows = fair->value_or(config.headroom);
  if (Status s = ReadTenants(*object, config); !s.ok()) return s.error();
  if (Status s = ReadTiming(*object, config); !s.ok()) return s.error();
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
