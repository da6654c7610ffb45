#include "slots/api/slots_json.h"

#include <simdjson.h>

#include <utility>

#include "base/json_text.h"
#include "protocol/http/error.h"
#include "slots/api/calendar_json.h"
#include "slots/config.h"

namespace weir::slots {
namespace {

namespace dom = simdjson::dom;

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

// The parser keeps its memory; documents are views into it, so one is in use at a time per thread.
Result<dom::object> ParseObject(std::string_view body) {
  static thread_local dom::parser parser;
  dom::object object;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS) {
    return Invalid("the body must be a JSON object");
  }
  return object;
}

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

Result<slots::Millis> RequestedTime(const dom::object& object) {
  Result<std::string_view> text = Text(object, "requestedTime");
  if (!text.ok()) return text.error();
  Result<slots::Millis> instant = slots::ParseInstant(*text);
  if (!instant.ok()) return Invalid("requestedTime " + instant.error().message);
  return instant;
}

// Fills what it can even if something is wrong, so that a refusal can name the event.
Status ReadAsk(const dom::object& object, slots::Ask& ask) {
  Result<std::string_view> event = Text(object, "eventId");
  if (!event.ok()) return event.error();
  Status s = slots::CheckName("eventId", *event, slots::kMaxEventIdBytes);
  if (!s.ok()) return s;
  ask.event_id = *event;
  Result<std::string_view> config = Text(object, "configName");
  if (!config.ok()) return config.error();
  s = slots::CheckName("configName", *config, slots::kMaxNameBytes);
  if (!s.ok()) return s;
  ask.config = *config;
  Result<std::optional<std::string_view>> tenant = OptionalText(object, "tenant");
  if (!tenant.ok()) return tenant.error();
  if (tenant->has_value() && !(*tenant)->empty()) {
    s = slots::CheckName("tenant", **tenant, slots::kMaxNameBytes);
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
  Result<slots::Millis> requested = RequestedTime(object);
  if (!requested.ok()) return requested.error();
  ask.requested = *requested;
  return {};
}

Status ReadTenants(const dom::object& object, slots::Config& config) {
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

Result<slots::Ask> ParseAsk(std::string_view body) {
  Result<dom::object> object = ParseObject(body);
  if (!object.ok()) return object.error();
  slots::Ask ask;
  if (Status s = ReadAsk(*object, ask); !s.ok()) return s.error();
  return ask;
}

Result<std::vector<ParsedAsk>> ParseBatch(std::string_view body) {
  Result<dom::object> object = ParseObject(body);
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

Result<slots::Ask> ParseReschedule(std::string_view body, std::string event_id) {
  Result<dom::object> object = ParseObject(body);
  if (!object.ok()) return object.error();
  slots::Ask ask{.event_id = std::move(event_id)};
  Result<std::optional<std::string_view>> config = OptionalText(*object, "configName");
  if (!config.ok()) return config.error();
  if (config->has_value()) {
    Status s = slots::CheckName("configName", **config, slots::kMaxNameBytes);
    if (!s.ok()) return s.error();
    ask.config = **config;
  }
  Result<slots::Millis> requested = RequestedTime(*object);
  if (!requested.ok()) return requested.error();
  ask.requested = *requested;
  return ask;
}

Result<slots::Config> ParseConfig(std::string_view body) {
  Result<dom::object> object = ParseObject(body);
  if (!object.ok()) return object.error();
  slots::Config config;
  Result<std::string_view> name = Text(*object, "configName");
  if (!name.ok()) return name.error();
  config.name = *name;
  Result<std::string_view> size = Text(*object, "windowSize");
  if (!size.ok()) return size.error();
  Result<slots::Millis> duration = slots::ParseDuration(*size);
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
  return slots::CheckConfig(std::move(config));
}

void AppendSlot(std::string& out, const slots::Slot& slot, std::string_view status,
                std::string_view message) {
  out += '{';
  AppendJsonField(out, "eventId", slot.event_id);
  out += ',';
  AppendJsonField(out, "configName", slot.config);
  if (!slot.tenant.empty()) {
    out += ',';
    AppendJsonField(out, "tenant", slot.tenant);
  }
  // Instants need no escaping.
  out += ",\"requestedTime\":\"" + slots::FormatInstant(slot.requested);
  out += "\",\"scheduledTime\":\"" + slots::FormatInstant(slot.scheduled);
  out += "\",\"windowStart\":\"" + slots::FormatInstant(slot.window_start);
  out += "\",";
  AppendJsonField(out, "delayMs", slot.scheduled - slot.requested);
  out += ',';
  AppendJsonField(out, "status", status);
  if (!message.empty()) {
    out += ',';
    AppendJsonField(out, "message", message);
  }
  out += '}';
}

void AppendRefusal(std::string& out, const slots::Ask& ask, std::string_view status,
                   std::string_view message) {
  out += '{';
  AppendJsonField(out, "eventId", ask.event_id);
  out += ',';
  AppendJsonField(out, "configName", ask.config);
  out += ',';
  AppendJsonField(out, "status", status);
  out += ',';
  AppendJsonField(out, "message", message);
  out += '}';
}

void AppendConfig(std::string& out, const slots::Config& config) {
  out += '{';
  AppendJsonField(out, "configName", config.name);
  out += ',';
  AppendJsonField(out, "version", config.version);
  out += ',';
  AppendJsonField(out, "windowSize", slots::FormatDuration(config.window_size));
  out += ',';
  AppendJsonField(out, "maxPerWindow", config.max_per_window);
  out += ',';
  AppendJsonField(out, "headroom", config.headroom);
  if (!config.tenants.empty()) {
    out += ',';
    AppendJsonField(out, "fairWindows", config.fair_windows);
    out += ",\"tenants\":{";
    for (std::size_t i = 0; i < config.tenants.size(); ++i) {
      if (i > 0) out += ',';
      AppendJsonString(out, config.tenants[i].first);
      out += ':' + std::to_string(config.tenants[i].second);
    }
    out += '}';
  }
  AppendTiming(out, config);
  out += std::string(",\"active\":") + (config.active ? "true" : "false") + ',';
  AppendJsonField(out, "createdAt", slots::FormatInstant(config.created_at));
  out += '}';
}

void AppendWindow(std::string& out, const slots::WindowLoad& window) {
  out += '{';
  AppendJsonField(out, "windowStart", slots::FormatInstant(window.start));
  out += ',';
  AppendJsonField(out, "count", window.count);
  if (window.carried > 0) {
    out += ',';
    AppendJsonField(out, "carried", window.carried);
  }
  out += ',';
  AppendJsonField(out, "status", window.open ? "OPEN" : "CLOSED");
  out += '}';
}

std::string ForecastBody(const slots::Forecast& forecast, const slots::Config& config,
                         slots::Millis requested, std::int64_t count) {
  std::string out = "{";
  AppendJsonField(out, "configName", config.name);
  out += ',';
  AppendJsonField(out, "requestedTime", slots::FormatInstant(requested));
  out += ',';
  AppendJsonField(out, "count", count);
  out += ',';
  AppendJsonField(out, "unplaced", forecast.unplaced());
  out += ',';
  AppendJsonField(out, "windows", forecast.windows());
  out += ',';
  AppendJsonField(out, "firstWindow", slots::FormatInstant(forecast.first_window()));
  out += ',';
  AppendJsonField(out, "lastWindow", slots::FormatInstant(forecast.last_window()));
  out += ',';
  AppendJsonField(out, "finishedBy", slots::FormatInstant(forecast.finished_by()));
  return out + '}';
}

std::string FindingsBody(const slots::Findings& findings) {
  std::string out = "{";
  out += std::string("\"clean\":") + (findings.problems == 0 ? "true" : "false") + ',';
  AppendJsonField(out, "windows", findings.windows);
  out += ',';
  AppendJsonField(out, "slots", findings.slots);
  out += ',';
  AppendJsonField(out, "problems", findings.problems);
  out += ",\"examples\":[";
  for (std::size_t i = 0; i < findings.examples.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonString(out, findings.examples[i]);
  }
  return out + "]}";
}

}  // namespace weir::slots
