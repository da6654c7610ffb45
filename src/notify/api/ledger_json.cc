#include "notify/api/ledger_json.h"

#include <simdjson.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/json_writer.h"
#include "notify/event.h"
#include "protocol/http/json_body.h"

namespace weir::notify {
namespace {

namespace dom = simdjson::dom;

constexpr std::array<std::string_view, 3> kChoiceFields = {"eventIds", "userId", "all"};
constexpr std::array<std::string_view, 3> kQuietFields = {"from", "to", "zone"};

Result<std::vector<std::string>> Texts(const dom::element& element, const std::string& name,
                                       std::size_t max) {
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS || array.size() > max) {
    return Invalid(name + " must be a list of at most " + std::to_string(max) + " strings");
  }
  std::vector<std::string> texts;
  for (const dom::element one : array) {
    std::string_view text;
    if (one.get(text) != simdjson::SUCCESS) return Invalid(name + " must be a list of strings");
    texts.emplace_back(text);
  }
  return texts;
}

Result<std::string> TextOf(const dom::object& object, const char* name) {
  std::string_view text;
  if (object[name].get(text) != simdjson::SUCCESS) {
    return Invalid("quietHours." + std::string(name) + " must be a string");
  }
  return std::string(text);
}

Result<QuietHours> ParseQuiet(const dom::element& element) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) return Invalid("quietHours must be an object");
  if (Status s = http::CheckSpelling(object, kQuietFields); !s.ok()) {
    return Invalid("quietHours: " + s.error().message);
  }
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
      return Invalid("quietHours." + std::string(end.name) + " " + minutes.error().message);
    }
    end.minutes = *minutes;
  }
  Result<std::string> zone = TextOf(object, "zone");
  if (!zone.ok()) return zone.error();
  quiet.zone = std::move(*zone);
  return quiet;
}

void AppendDeadFields(JsonWriter& json, const DeadMessage& dead) {
  json.Field("eventId", dead.event_id)
      .Field("userId", dead.user_id)
      .Field("error", dead.error)
      .Field("attempts", dead.attempts)
      .Field("failedAt", FormatTime(dead.failed_at));
}

}  // namespace

void AppendMessage(JsonWriter& json, const Message& message) {
  json.BeginObject()
      .Field("eventId", message.accepted.event_id)
      .Field("userId", message.accepted.user_id)
      .Field("channel", message.accepted.channel);
  if (!message.accepted.recipient.empty()) json.Field("recipient", message.accepted.recipient);
  json.Field("state", NameOf(message.state)).Field("attempts", message.attempts);
  if (!message.last_error.empty()) json.Field("lastError", message.last_error);
  json.Field("acceptedAt", FormatTime(message.accepted.at))
      .Field("updatedAt", FormatTime(message.updated_at));
  if (message.not_before > 0) json.Field("notBefore", FormatTime(message.not_before));
  json.EndObject();
}

void AppendDead(JsonWriter& json, const DeadMessage& dead) {
  json.BeginObject();
  AppendDeadFields(json, dead);
  json.EndObject();
}

std::string DeadBody(const DeadMessage& dead) {
  const Result<Event> event = DecodeEvent(dead.event);
  return JsonObject([&](JsonWriter& json) {
    AppendDeadFields(json, dead);
    if (event.ok()) {
      json.Field("channel", event->channel)
          .Field("recipient", event->to())
          .Field("message", event->message);
    } else {
      json.Field("payload", dead.event);
    }
  });
}

Result<DeadChoice> ParseDeadChoice(std::string_view body) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  if (Status s = http::CheckSpelling(*object, kChoiceFields); !s.ok()) return s.error();
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
  return Invalid("the body must have one of eventIds, userId and \"all\":true");
}

std::string PreferencesBody(const Preferences& preferences) {
  return JsonObject([&](JsonWriter& json) {
    json.Field("userId", preferences.user_id);
    if (preferences.quiet) {
      json.Key("quietHours")
          .BeginObject()
          .Field("from", FormatTimeOfDay(preferences.quiet->from))
          .Field("to", FormatTimeOfDay(preferences.quiet->to))
          .Field("zone", preferences.quiet->zone)
          .EndObject();
    }
    json.Key("optOut").BeginArray();
    for (const std::string& channel : preferences.opted_out) json.Value(channel);
    json.EndArray();
  });
}

Result<Preferences> ParsePreferences(std::string_view body, std::string user_id) {
  http::JsonBody json;
  Result<dom::object> object = json.Parse(body);
  if (!object.ok()) return object.error();
  // Fields missing from the body are removed: a misspelled opt-out must not be.
  Status known = http::CheckFields(*object, "preferences", {"userId", "quietHours", "optOut"});
  if (!known.ok()) return known.error();
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
