#include <simdjson.h>

#include <iostream>
#include <memory>

#include "base/json_writer.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "slots/slots_words.h"
#include "slots/time.h"

// weir slots show | cancel | restore | reschedule: one event of a running service, in the audit log
// where it changes. weir slots due | status: what is to be executed.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

struct Words {
  Remote remote;
  std::string event;
  std::string config;
  std::string at;
  std::string before;
  std::string state;
  std::size_t limit = 100;
};

int Unexpected() { return Fail({Code::kUnavailable, "unexpected response"}); }

std::string PathOf(const Words& words) { return "/api/v1/slots/" + UrlEscaped(words.event); }

int ShowSlot(const ServiceReply& reply, const Words& words) {
  dom::parser parser;
  dom::element slot;
  if (parser.parse(reply.body).get(slot) != simdjson::SUCCESS) return Unexpected();
  if (words.remote.json) return kExitOk;
  Table table({"event", "status", "config", "scheduled", "window"});
  table.Add({TextOf(slot, "eventId"), TextOf(slot, "status"), TextOf(slot, "configName"),
             TextOf(slot, "scheduledTime"), TextOf(slot, "windowStart")});
  std::cout << table.ToString();
  return kExitOk;
}

int RunChange(const Words& words, std::string_view method, const std::string& path) {
  std::string body;
  if (!words.at.empty()) {
    const Result<slots::Millis> at = slots::ParseInstant(words.at);
    if (!at.ok()) return Fail({at.error().code, "--at " + at.error().message});
    body = JsonObject([&](JsonWriter& json) {
      json.Field("requestedTime", slots::FormatInstant(*at));
      if (!words.config.empty()) json.Field("configName", words.config);
    });
  }
  return words.remote.Ask(method, path, body,
                          [&](const ServiceReply& reply) { return ShowSlot(reply, words); });
}

int ShowEvent(const ServiceReply& reply) {
  dom::parser parser;
  dom::element event;
  if (parser.parse(reply.body).get(event) != simdjson::SUCCESS) return Unexpected();
  Table table({"", ""});
  for (const char* field :
       {"eventId", "state", "configName", "tenant", "requestedTime", "scheduledTime", "attempts",
        "createdAt", "claimedAt", "claimedBy", "leaseUntil", "finishedAt", "error"}) {
    const std::string text = TextOf(event, field);
    if (!text.empty()) table.Add({field, text});
  }
  dom::array history;
  if (event["history"].get(history) == simdjson::SUCCESS) {
    for (const dom::element change : history) {
      const std::string was = TextOf(change, "was");
      table.Add(
          {TextOf(change, "at"), TextOf(change, "what") + " " +
                                     (was.empty() ? TextOf(change, "detail") : "from " + was)});
    }
  }
  std::cout << table.ToString();
  return kExitOk;
}

int RunShow(const Words& words) {
  return words.remote.Ask("GET", PathOf(words), {}, [&](const ServiceReply& reply) {
    return words.remote.json ? static_cast<int>(kExitOk) : ShowEvent(reply);
  });
}

int RunDue(const Words& words) {
  std::string target = "/api/v1/slots/due?config=" + UrlEscaped(words.config) +
                       "&limit=" + std::to_string(words.limit);
  if (!words.before.empty()) target += "&before=" + UrlEscaped(words.before);
  if (!words.state.empty()) target += "&state=" + UrlEscaped(words.state);
  return words.remote.Ask("GET", target, {}, [&](const ServiceReply& reply) -> int {
    if (words.remote.json) return kExitOk;
    dom::parser parser;
    dom::array events;
    if (parser.parse(reply.body)["events"].get(events) != simdjson::SUCCESS) return Unexpected();
    Table table({"event", "state", "scheduled", "tenant", ">attempts", "error"});
    for (const dom::element event : events) {
      table.Add({TextOf(event, "eventId"), TextOf(event, "state"), TextOf(event, "scheduledTime"),
                 TextOf(event, "tenant"), TextOf(event, "attempts"), TextOf(event, "error")});
    }
    std::cout << table.ToString();
    return kExitOk;
  });
}

int RunStatus(const Words& words) {
  return words.remote.Ask(
      "GET", "/admin/rate-limit/backlog", {}, [&](const ServiceReply& reply) -> int {
        if (words.remote.json) return kExitOk;
        dom::parser parser;
        dom::array configs;
        if (parser.parse(reply.body)["configs"].get(configs) != simdjson::SUCCESS) {
          return Unexpected();
        }
        Table table({"config", ">due", "oldest due", ">claimed", ">this window", ">failed",
                     "caught up by"});
        for (const dom::element one : configs) {
          table.Add({TextOf(one, "configName"), TextOf(one, "due"), TextOf(one, "oldestDue"),
                     TextOf(one, "claimed"),
                     TextOf(one, "grantedInWindow") + " of " + TextOf(one, "maxPerWindow"),
                     TextOf(one, "failed"), TextOf(one, "caughtUpBy")});
        }
        std::cout << table.ToString();
        return kExitOk;
      });
}

using Run = int (*)(const Words&);

CLI::App* Add(CLI::App& slots_word, const std::shared_ptr<Words>& words, const char* name,
              const char* description, Run run, int& exit_code) {
  CLI::App* word = slots_word.add_subcommand(name, description);
  words->remote.AddTo(*word);
  word->callback([words, run, &exit_code] { exit_code = run(*words); });
  return word;
}

CLI::App* AddForEvent(CLI::App& slots_word, const std::shared_ptr<Words>& words, const char* name,
                      const char* description, Run run, int& exit_code) {
  CLI::App* word = Add(slots_word, words, name, description, run, exit_code);
  word->add_option("event", words->event, "The event's id")->required();
  return word;
}

}  // namespace

void AddSlotsEvents(CLI::App& slots_word, int& exit_code) {
  AddForEvent(slots_word, std::make_shared<Words>(), "show", "What became of an event.", RunShow,
              exit_code);
  AddForEvent(
      slots_word, std::make_shared<Words>(), "cancel",
      "Cancel an event. It stays cancelled when its feed is imported again.",
      [](const Words& words) { return RunChange(words, "DELETE", PathOf(words)); }, exit_code);
  auto restore = std::make_shared<Words>();
  AddForEvent(
      slots_word, restore, "restore", "Take a cancellation back.",
      [](const Words& words) { return RunChange(words, "POST", PathOf(words) + "/restore"); },
      exit_code)
      ->add_option("--at", restore->at, "A new requested time (default: the old one)");
  auto move = std::make_shared<Words>();
  CLI::App* word = AddForEvent(
      slots_word, move, "reschedule", "Give an event another time. A failed one is tried again.",
      [](const Words& words) { return RunChange(words, "POST", PathOf(words) + "/reschedule"); },
      exit_code);
  word->add_option("--at", move->at, "The new requested time")->required();
  word->add_option("--config", move->config, "Another config (default: the one it has)");
  auto due = std::make_shared<Words>();
  word = Add(slots_word, due, "due", "List events that are due, oldest first.", RunDue, exit_code);
  word->add_option("--config", due->config, "The config")->required();
  word->add_option("--before", due->before, "Due by this time (default: now)");
  word->add_option("--state", due->state,
                   "SCHEDULED (the default), CLAIMED, DONE, FAILED or CANCELLED");
  word->add_option("--limit", due->limit, "At most this many")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000}))
      ->capture_default_str();
  Add(slots_word, std::make_shared<Words>(), "status",
      "The backlog of each config, and when it will be caught up.", RunStatus, exit_code);
}

}  // namespace weir::app
