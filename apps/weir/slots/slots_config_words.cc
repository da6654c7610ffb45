#include <simdjson.h>

#include <iostream>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "console.h"
#include "protocol/http/error.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "slots/api/calendar_json.h"
#include "slots/slot.h"
#include "slots/slots_words.h"
#include "slots/time.h"

// weir slots config list | get | set | delete | history.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

constexpr const char* kConfigsPath = "/admin/rate-limit/config";

struct ConfigWords {
  Remote remote;
  std::string name;
  std::string window;
  std::optional<std::int64_t> max;
  std::optional<std::int64_t> headroom;
  std::optional<std::int64_t> fair_windows;
  std::vector<std::string> tenants;
  bool no_tenants = false;
  std::string calendar;
  std::vector<std::string> holidays;
  bool no_calendar = false;
  std::string past;
};

std::string ConfigPath(const ConfigWords& words) {
  return std::string(kConfigsPath) + "/" + UrlEscaped(words.name);
}

std::string TenantsOf(dom::element config) {
  dom::object tenants;
  if (config["tenants"].get(tenants) != simdjson::SUCCESS) return {};
  std::string text;
  for (const dom::key_value_pair tenant : tenants) {
    text += (text.empty() ? "" : " ") + std::string(tenant.key) + "=" +
            std::string(simdjson::minify(tenant.value));
  }
  return text;
}

std::string ZoneOf(dom::element config) {
  std::string_view zone;
  return config["calendar"]["zone"].get(zone) == simdjson::SUCCESS ? std::string(zone) : "";
}

std::string StateOf(dom::element config) {
  return TextOf(config, "active") == "true" ? "active" : "inactive";
}

/// The configs of an answer, as a table.
template <typename Configs>
int PrintConfigs(const Configs& configs) {
  Table table(
      {"config", ">version", "window", ">max", ">headroom", "tenants", "zone", "state", "since"});
  for (const dom::element config : configs) {
    table.Add({TextOf(config, "configName"), TextOf(config, "version"),
               TextOf(config, "windowSize"), TextOf(config, "maxPerWindow"),
               TextOf(config, "headroom"), TenantsOf(config), ZoneOf(config), StateOf(config),
               TextOf(config, "createdAt")});
  }
  std::cout << table.ToList();
  return kExitOk;
}

int AskForMany(const ConfigWords& words, const std::string& target, const char* field) {
  return words.remote.Ask("GET", target, {}, [&](const ServiceReply& reply) -> int {
    if (words.remote.json) return kExitOk;
    dom::parser parser;
    dom::array configs;
    if (parser.parse(reply.body)[field].get(configs) != simdjson::SUCCESS) return FailUnexpected();
    return PrintConfigs(configs);
  });
}

int ShowOne(const ConfigWords& words, const ServiceReply& reply) {
  if (words.remote.json) return kExitOk;
  dom::parser parser;
  dom::element config;
  if (parser.parse(reply.body).get(config) != simdjson::SUCCESS) return FailUnexpected();
  return PrintConfigs(std::vector{config});
}

int RunList(const ConfigWords& words) { return AskForMany(words, kConfigsPath, "configs"); }
int RunHistory(const ConfigWords& words) {
  return AskForMany(words, ConfigPath(words) + "/versions", "versions");
}
int RunGet(const ConfigWords& words) {
  return words.remote.Ask("GET", ConfigPath(words), {},
                          [&](const ServiceReply& reply) { return ShowOne(words, reply); });
}

int RunDelete(const ConfigWords& words) {
  return words.remote.Ask("DELETE", ConfigPath(words), {}, [&](const ServiceReply&) -> int {
    if (!words.remote.json)
      std::cout << "deleted " << Shown(words.name) << "; its assigned slots stay\n";
    return kExitOk;
  });
}

/// 4s or PT4S, as the API expects it.
Result<std::string> WindowSize(const std::string& text) {
  if (slots::ParseDuration(text).ok()) return text;
  constexpr std::int64_t kNanosPerMilli = 1'000'000;
  const auto duration = ParseDuration(text);
  if (!duration.ok() || duration->count() % kNanosPerMilli != 0) {
    return Error{Code::kInvalidArgument,
                 "--window " + text +
                     ": write a number with a unit, such as 4s, 250ms or PT4S; at least 1ms"};
  }
  return slots::FormatDuration(duration->count() / kNanosPerMilli);
}

/// --tenant NAME=WEIGHT, all of them, as a JSON object.
Result<std::string> Tenants(const std::vector<std::string>& given) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  for (const std::string& one : given) {
    const std::size_t equals = one.rfind('=');
    const std::string weight = equals == std::string::npos ? "" : one.substr(equals + 1);
    if (equals == 0 || weight.empty() || weight.size() > 7 ||
        weight.find_first_not_of("0123456789") != std::string::npos) {
      return Error{Code::kInvalidArgument, "--tenant must be like acme=3, but is " + one};
    }
    json.AnyKey(one.substr(0, equals)).Value(ParseNumber<std::int64_t>(weight).value_or(0));
  }
  json.EndObject();
  return text;
}

void AppendNumber(JsonWriter& json, const char* field, std::optional<std::int64_t> given,
                  std::optional<dom::element> now) {
  const std::string kept = now ? TextOf(*now, field) : "";
  if (!given && kept.empty()) return;
  json.RawField(field, given ? std::to_string(*given) : kept);
}

/// The new calendar and rule for past times.
Status AppendTiming(JsonWriter& json, const ConfigWords& words, std::optional<dom::element> now) {
  slots::Config config;
  dom::object kept;
  if (now && now->get(kept) == simdjson::SUCCESS) {
    if (Status s = slots::ReadTiming(kept, config); !s.ok()) return s;
  }
  if (words.no_calendar) config.calendar = {};
  std::string text =
      words.calendar.empty() ? slots::FormatCalendar(config.calendar) : words.calendar;
  if (text.empty() && !words.holidays.empty()) {
    return Error{Code::kInvalidArgument, "--holiday needs a calendar: give --calendar"};
  }
  for (const std::string& holiday : words.holidays) text += " " + holiday;
  Result<slots::Calendar> calendar = slots::ParseCalendar(text);
  if (!calendar.ok()) return calendar.error();
  config.calendar = std::move(*calendar);
  if (!words.past.empty()) {
    config.past = words.past == "now"      ? slots::Past::kNow
                  : words.past == "refuse" ? slots::Past::kRefuse
                                           : slots::Past::kKeep;
  }
  slots::AppendTiming(json, config);
  return {};
}

/// The new config: the options' values, and for the rest those of `now`.
Result<std::string> BodyOf(const ConfigWords& words, std::optional<dom::element> now) {
  if (!now && (words.window.empty() || !words.max)) {
    return Error{Code::kInvalidArgument,
                 "there is no config " + words.name + " yet: give --window and --max"};
  }
  const Result<std::string> window =
      words.window.empty() ? TextOf(*now, "windowSize") : WindowSize(words.window);
  if (!window.ok()) return window.error();
  std::string body;
  JsonWriter json(body);
  json.BeginObject().Field("configName", words.name).Field("windowSize", *window);
  AppendNumber(json, "maxPerWindow", words.max, now);
  AppendNumber(json, "headroom", words.headroom, now);
  const std::string kept = now ? TextOf(*now, "tenants") : "";
  if (!words.tenants.empty()) {
    const Result<std::string> tenants = Tenants(words.tenants);
    if (!tenants.ok()) return tenants.error();
    json.RawField("tenants", *tenants);
  } else if (!words.no_tenants && !kept.empty()) {
    json.RawField("tenants", kept);
  }
  AppendNumber(json, "fairWindows", words.fair_windows, words.no_tenants ? std::nullopt : now);
  if (Status s = AppendTiming(json, words, now); !s.ok()) return s.error();
  json.EndObject();
  return body;
}

int RunSet(const ConfigWords& words) {
  // Not the config itself, which the service may have cached before another node changed it.
  const Result<ServiceReply> before = words.remote.Exchange("GET", ConfigPath(words) + "/versions");
  if (!before.ok()) return Fail(before.error());
  constexpr int kNotFound = 404;
  if (!before->ok() && before->status != kNotFound) return FailRefused(*before);
  dom::parser parser;
  std::optional<dom::element> now;
  if (before->ok()) {
    dom::element latest;
    if (parser.parse(before->body)["versions"].at(0).get(latest) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    if (TextOf(latest, "active") == "true") now = latest;
  }
  const Result<std::string> body = BodyOf(words, now);
  if (!body.ok()) return Fail(body.error());
  return words.remote.Ask("POST", kConfigsPath, *body,
                          [&](const ServiceReply& reply) { return ShowOne(words, reply); });
}

Syntax AddWord(Syntax parent, const char* name, const char* about,
               const std::shared_ptr<ConfigWords>& words, int (*run)(const ConfigWords&)) {
  Syntax word = parent.AddSubcommand(name, about);
  if (run != RunList) word.AddOption("name", words->name, "The config's name").Required();
  words->remote.AddTo(word);
  word.OnRun([words, run] { return run(*words); });
  return word;
}

}  // namespace

void AddSlotsConfig(Syntax slots_word) {
  Syntax config =
      slots_word.AddSubcommand("config", "List, show and change the configs of a running service.");
  config.RequireSubcommand();
  const auto add = [&](const char* name, const char* about, int (*run)(const ConfigWords&)) {
    AddWord(config, name, about, std::make_shared<ConfigWords>(), run);
  };
  add("list", "List the active configs.", RunList);
  add("get", "Show a config.", RunGet);
  add("delete", "Stop assigning slots under a config; assigned slots stay.", RunDelete);
  add("history", "List the versions of a config, newest first.", RunHistory);
  auto words = std::make_shared<ConfigWords>();
  Syntax set = AddWord(config, "set", "Create a config, or its next version.", words, RunSet);
  set.AddOption("--window", words->window, "Length of a window: 4s, 250ms, PT4S");
  set.AddOption("--max", words->max, "Maximum number of events per window")
      .Between(std::int64_t{1}, slots::kMaxPerWindow);
  set.AddOption("--headroom", words->headroom,
                "Number of windows to search beyond the first one that is not full")
      .Between(std::int64_t{0}, slots::kMaxHeadroom);
  Option tenant =
      set.AddOption("--tenant", words->tenants, "NAME=WEIGHT, for each tenant with a share")
          .OneValueEach()
          .TakeAll();
  set.AddOption("--fair-windows", words->fair_windows,
                "Number of windows in which tenants are limited to their shares")
      .Between(std::int64_t{0}, slots::kMaxHeadroom + 1);
  set.AddFlag("--no-tenants", words->no_tenants, "Remove all shares").Excludes(tenant);
  Option calendar = set.AddOption("--calendar", words->calendar,
                                  "Opening hours: 'ZONE DAYS OPEN-CUTOFF [DATE...]'");
  Option holiday = set.AddOption("--holiday", words->holidays,
                                 "A holiday, or a day with a cut-off as DATE@CUTOFF; repeatable")
                       .OneValueEach()
                       .TakeAll();
  set.AddFlag("--no-calendar", words->no_calendar, "Remove the calendar: always open")
      .Excludes(calendar)
      .Excludes(holiday);
  set.AddOption("--past", words->past,
                "What to do with requested times in the past: keep, now or refuse")
      .OneOf({"keep", "now", "refuse"});
  set.Footer(
      "Options that are not given keep their values. weir audit lists the change and can undo "
      "it.\n\n"
      "  weir slots config set default --window 4s --max 100\n"
      "  weir slots config set default --max 200\n"
      "  weir slots config set default --tenant acme=3 --tenant globex=1\n"
      "  weir slots config set default --calendar 'Europe/Berlin MON-FRI 08:00-17:00' --holiday "
      "2025-12-25");
}

}  // namespace weir::app
