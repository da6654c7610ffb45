#include "notify/api/ledger_json.h"

#include <simdjson.h>

#include <utility>

#include "base/json_text.h"
#include "notify/event.h"

namespace weir::notify {
namespace {

namespace dom = simdjson::dom;

Error BadBody(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Result<dom::object> ParseObject(std::string_view body) {
  static thread_local dom::parser parser;
  dom::object object;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS) {
    return BadBody("the body must be a JSON object");
  }
  return object;
}

void Field(std::string& out, std::string_view name, std::string_view text) {
  out += ',';
  AppendJsonField(out, name, text);
}

Result<std::vector<std::string>> Texts(const dom::element& element, const std::string& name,
                                       std::size_t max) {
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS || array.size() > max) {
    return BadBody(name + " must be a list of at most " + std::to_string(max) + " strings");
  }
  std::vector<std::string> texts;
  for (const dom::element one : array) {
    std::string_view text;
    if (one.get(text) != simdjson::SUCCESS) return BadBody(name + " must be a list of strings");
    texts.emplace_back(text);
  }
  return texts;
}

Result<std::string> TextOf(const dom::object& object, const char* name) {
  std::string_view text;
  if (object[name].get(text) != simdjson::SUCCESS) {
    return BadBody("quietHours." + std::string(name) + " must be a string");
  }
  return std::string(text);
}

Result<QuietHours> ParseQuiet(const dom::element& element) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) return BadBody("quietHours must be an object");
  QuietHours quiet;
  struct End {
    const char* name;
    int& minutes;
  };
  for (const End& end : {End{"from", quiet.from}, End{"to", quiet.to}}) {
    Result<std::string> text = TextOf(object, end.name);
    if (!text.ok()) return text.error();
    Result<int> minutes = ParseTimeOfDay(*text);
    if (!minutes.ok()) {
      return BadBody("quietHours." + std::string(end.name) + " " + minutes.error().message);
    }
    end.minutes = *minutes;
  }
  Result<std::string> zone = TextOf(object, "zone");
  if (!zone.ok()) return zone.error();
  quiet.zone = std::move(*zone);
  return quiet;
}

}  // namespace

void AppendMessage(std::string& out, const Message& message) {
  out += '{';
  AppendJsonField(out, "eventId", message.accepted.event_id);
  Field(out, "userId", message.accepted.user_id);
  Field(out, "channel", message.accepted.channel);
  if (!message.accepted.recipient.empty()) Field(out, "recipient", message.accepted.recipient);
  Field(out, "state", NameOf(message.state));
  out += ',';
  AppendJsonField(out, "attempts", message.attempts);
  if (!message.last_error.empty()) Field(out, "lastError", message.last_error);
  Field(out, "acceptedAt", FormatTime(message.accepted.at));
  Field(out, "updatedAt", FormatTime(message.updated_at));
  if (message.not_before > 0) Field(out, "notBefore", FormatTime(message.not_before));
  out += '}';
}

void AppendDead(std::string& out, const DeadMessage& dead) {
  out += '{';
  AppendJsonField(out, "eventId", dead.event_id);
  Field(out, "userId", dead.user_id);
  Field(out, "error", dead.error);
  out += ',';
  AppendJsonField(out, "attempts", dead.attempts);
  Field(out, "failedAt", FormatTime(dead.failed_at));
  out += '}';
}

std::string DeadBody(const DeadMessage& dead) {
  std::string out;
  AppendDead(out, dead);
  out.pop_back();
  const Result<Event> event = DecodeEvent(dead.event);
  if (event.ok()) {
    Field(out, "channel", event->channel);
    Field(out, "recipient", event->to());
    Field(out, "message", event->message);
  } else {
    Field(out, "payload", dead.event);
  }
  return out + '}';
}

Result<DeadChoice> ParseDeadChoice(std::string_view body) {
  Result<dom::object> object = ParseObject(body);
  if (!object.ok()) return object.error();
  DeadChoice choice;
  dom::element given;
  int choices = 0;
  if ((*object)["eventIds"].get(given) == simdjson::SUCCESS) {
    Result<std::vector<std::string>> ids = Texts(given, "eventIds", kMaxDeadBatch);
    if (!ids.ok()) return ids.error();
    choice.event_ids = std::move(*ids);
    ++choices;
  }
  std::string_view user;
  if ((*object)["userId"].get(user) == simdjson::SUCCESS) {
    choice.user_id = user;
    if (Status s = CheckUserId(choice.user_id); !s.ok()) return s.error();
    ++choices;
  }
  if ((*object)["all"].get(choice.all) == simdjson::SUCCESS && choice.all) ++choices;
  if (choices == 1) return choice;
  return BadBody("the body must have one of eventIds, userId and \"all\":true");
}

std::string PreferencesBody(const Preferences& preferences) {
  std::string out = "{";
  AppendJsonField(out, "userId", preferences.user_id);
  if (preferences.quiet) {
    out += ",\"quietHours\":{";
    AppendJsonField(out, "from", FormatTimeOfDay(preferences.quiet->from));
    Field(out, "to", FormatTimeOfDay(preferences.quiet->to));
    Field(out, "zone", preferences.quiet->zone);
    out += '}';
  }
  out += ",\"optOut\":[";
  for (std::size_t i = 0; i < preferences.opted_out.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonString(out, preferences.opted_out[i]);
  }
  return out + "]}";
}

Result<Preferences> ParsePreferences(std::string_view body, std::string user_id) {
  Result<dom::object> object = ParseObject(body);
  if (!object.ok()) return object.error();
  Preferences parsed{.user_id = std::move(user_id)};
  dom::element given;
  if ((*object)["quietHours"].get(given) == simdjson::SUCCESS && !given.is_null()) {
    Result<QuietHours> quiet = ParseQuiet(given);
    if (!quiet.ok()) return quiet.error();
    parsed.quiet = std::move(*quiet);
  }
  if ((*object)["optOut"].get(given) == simdjson::SUCCESS && !given.is_null()) {
    Result<std::vector<std::string>> channels = Texts(given, "optOut", kMaxOptOuts);
    if (!channels.ok()) return channels.error();
    parsed.opted_out = std::move(*channels);
  }
  if (Status s = CheckPreferences(parsed); !s.ok()) return s.error();
  return parsed;
}

}  // namespace weir::notify
