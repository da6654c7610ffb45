#include <simdjson.h>

#include <iostream>
#include <memory>
#include <optional>

#include "base/hex.h"
#include "base/json_writer.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "slots/slots_words.h"
#include "slots/time.h"
#include "weir/clock.h"

// weir slots show | cancel | restore | reschedule: one event of a running service, in the audit log
// where it changes. weir slots due | status: what is to be executed.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

struct EventWords {
  Remote remote;
  std::string event;
  std::string config;
  std::string at;
  std::string before;
  std::string after;
  std::string state;
  std::size_t limit = 100;
};

/// The outcome of a command for many events.
struct Moved {
  std::int64_t count = 0;
  std::int64_t kept = 0;  ///< refused: claimed or cancelled meanwhile, or there is no room
};

constexpr std::int64_t kMaxShown = 10;

/// A word such as "due" may be a path of its own: with its first letter escaped it is
/// the event.
std::string EventPath(std::string_view event) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::string path = "/api/v1/slots/";
  if (event.empty() || event.find_first_not_of(kLetters) != std::string_view::npos) {
    return path + UrlEscaped(event);
  }
  AppendPercent(path, event.front());
  return path + UrlEscaped(event.substr(1));
}

int ShowSlot(const ServiceReply& reply, const EventWords& words) {
  dom::parser parser;
  dom::element slot;
  if (parser.parse(reply.body).get(slot) != simdjson::SUCCESS) return FailUnexpected();
  if (words.remote.json) return kExitOk;
  Table table({"event", "status", "config", "scheduled", "window"});
  table.Add({TextOf(slot, "eventId"), TextOf(slot, "status"), TextOf(slot, "configName"),
             TextOf(slot, "scheduledTime"), TextOf(slot, "windowStart")});
  std::cout << table.ToString();
  return kExitOk;
}

int RunChange(const EventWords& words, std::string_view method, const std::string& path) {
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

// To the time that was given, or else to now: of many, the last must not come too late.
std::string ToThisTime(std::optional<slots::Millis> at) {
  const slots::Millis time = at.value_or(SystemClock::Get().Now() / 1'000'000);
  return JsonObject(
      [&](JsonWriter& json) { json.Field("requestedTime", slots::FormatInstant(time)); });
}

// One page of dead letters; answers where the next one begins, or nothing after the last.
Result<std::optional<std::string>> ReschedulePage(const EventWords& words, const std::string& after,
                                                  std::optional<slots::Millis> at, Moved& moved) {
  const Result<ServiceReply> page = words.remote.Exchange(
      "GET", "/api/v1/slots/due?limit=1000&before=9999-12-31T23:59:59Z&state=" +
                 UrlEscaped(words.state) + "&config=" + UrlEscaped(words.config) + after);
  if (!page.ok()) return page.error();
  if (!page->ok()) return Error{Code::kFailedPrecondition, MessageOf(page->body)};
  dom::parser parser;
  dom::element list;
  dom::array events;
  if (parser.parse(page->body).get(list) != simdjson::SUCCESS ||
      list["events"].get(events) != simdjson::SUCCESS) {
    return Error{Code::kUnavailable, "unexpected response"};
  }
  for (const dom::element event : events) {
    const std::string id = TextOf(event, "eventId");
    const Result<ServiceReply> reply =
        words.remote.Exchange("POST", EventPath(id) + "/reschedule", ToThisTime(at));
    if (!reply.ok()) return reply.error();
    if (reply->ok()) {
      ++moved.count;
    } else if (++moved.kept <= kMaxShown) {
      std::cerr << "weir: " << id << ": " << MessageOf(reply->body) << '\n';
    }
  }
  const std::string next = TextOf(list, "next");
  if (next.empty()) return std::optional<std::string>();
  return std::optional<std::string>("&after=" + UrlEscaped(next));
}

// All dead letters of a config. Each is a call of its own, so that each is in the audit log;
// running it again after an interruption continues with the rest.
int RescheduleAll(const EventWords& words) {
  if (words.state != "FAILED" || words.config.empty()) {
    return Fail({Code::kInvalidArgument, "give an event, or --state FAILED and --config"});
  }
  std::optional<slots::Millis> at;
  if (!words.at.empty()) {
    const Result<slots::Millis> given = slots::ParseInstant(words.at);
    if (!given.ok()) return Fail({given.error().code, "--at " + given.error().message});
    at = *given;
  }
  Moved moved;
  for (std::optional<std::string> after = ""; after;) {
    Result<std::optional<std::string>> next = ReschedulePage(words, *after, at, moved);
    if (!next.ok()) return Fail(next.error());
    after = std::move(*next);
  }
  if (words.remote.json) {
    std::cout << JsonObject([&](JsonWriter& json) {
      json.Field("rescheduled", moved.count).Field("kept", moved.kept);
    }) << '\n';
  } else {
    std::cout << "rescheduled " << moved.count << ", kept as they are " << moved.kept << '\n';
  }
  return moved.kept == 0 ? kExitOk : kExitRefused;
}

int RunReschedule(const EventWords& words) {
  if (words.event.empty()) return RescheduleAll(words);
  if (!words.state.empty()) {
    return Fail({Code::kInvalidArgument, "give an event or --state, not both"});
  }
  if (words.at.empty()) return Fail({Code::kInvalidArgument, "--at is required"});
  return RunChange(words, "POST", EventPath(words.event) + "/reschedule");
}

int ShowEvent(const ServiceReply& reply) {
  dom::parser parser;
  dom::element event;
  if (parser.parse(reply.body).get(event) != simdjson::SUCCESS) return FailUnexpected();
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

int RunShow(const EventWords& words) {
  return words.remote.Ask("GET", EventPath(words.event), {}, [&](const ServiceReply& reply) {
    return words.remote.json ? static_cast<int>(kExitOk) : ShowEvent(reply);
  });
}

int RunDue(const EventWords& words) {
  std::string target = "/api/v1/slots/due?config=" + UrlEscaped(words.config) +
                       "&limit=" + std::to_string(words.limit);
  if (!words.before.empty()) target += "&before=" + UrlEscaped(words.before);
  if (!words.state.empty()) target += "&state=" + UrlEscaped(words.state);
  if (!words.after.empty()) target += "&after=" + UrlEscaped(words.after);
  return words.remote.Ask("GET", target, {}, [&](const ServiceReply& reply) -> int {
    if (words.remote.json) return kExitOk;
    dom::parser parser;
    dom::element list;
    dom::array events;
    if (parser.parse(reply.body).get(list) != simdjson::SUCCESS ||
        list["events"].get(events) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    Table table({"event", "state", "scheduled", "tenant", ">attempts", "error"});
    for (const dom::element event : events) {
      table.Add({TextOf(event, "eventId"), TextOf(event, "state"), TextOf(event, "scheduledTime"),
                 TextOf(event, "tenant"), TextOf(event, "attempts"), TextOf(event, "error")});
    }
    std::cout << table.ToList();
    const std::string next = TextOf(list, "next");
    if (!next.empty()) std::cout << "there may be more: --after '" << next << "'\n";
    return kExitOk;
  });
}

int RunStatus(const EventWords& words) {
  return words.remote.Ask(
      "GET", "/admin/rate-limit/backlog", {}, [&](const ServiceReply& reply) -> int {
        if (words.remote.json) return kExitOk;
        dom::parser parser;
        dom::array configs;
        if (parser.parse(reply.body)["configs"].get(configs) != simdjson::SUCCESS) {
          return FailUnexpected();
        }
        Table table({"config", ">due", "oldest due", ">later", ">claimed", ">this window",
                     ">failed", "caught up by"});
        for (const dom::element one : configs) {
          const std::string caught_up = TextOf(one, "caughtUpBy");
          const bool more = TextOf(one, "dueIsMore") == "true";
          table.Add({TextOf(one, "configName"), TextOf(one, "due") + (more ? " or more" : ""),
                     TextOf(one, "oldestDue"), TextOf(one, "scheduledLater"),
                     TextOf(one, "claimed"),
                     TextOf(one, "grantedInWindow") + " of " + TextOf(one, "maxPerWindow"),
                     TextOf(one, "failed"), caught_up.empty() ? "unknown" : caught_up});
        }
        std::cout << table.ToList();
        return kExitOk;
      });
}

using Run = int (*)(const EventWords&);

Syntax Add(Syntax slots_word, const std::shared_ptr<EventWords>& words, const char* name,
           const char* description, Run run) {
  Syntax word = slots_word.AddSubcommand(name, description);
  words->remote.AddTo(word);
  word.OnRun([words, run] { return run(*words); });
  return word;
}

Syntax AddForEvent(Syntax slots_word, const std::shared_ptr<EventWords>& words, const char* name,
                   const char* description, Run run) {
  Syntax word = Add(slots_word, words, name, description, run);
  word.AddOption("event", words->event, "The event's ID").Required();
  return word;
}

}  // namespace

void AddSlotsEvents(Syntax slots_word) {
  AddForEvent(slots_word, std::make_shared<EventWords>(), "show", "Show the state of an event.",
              RunShow);
  AddForEvent(
      slots_word, std::make_shared<EventWords>(), "cancel",
      "Cancel an event; it stays cancelled if its feed is imported again.",
      [](const EventWords& words) { return RunChange(words, "DELETE", EventPath(words.event)); });
  auto restore = std::make_shared<EventWords>();
  AddForEvent(slots_word, restore, "restore", "Restore a cancelled event.",
              [](const EventWords& words) {
                return RunChange(words, "POST", EventPath(words.event) + "/restore");
              })
      .AddOption("--at", restore->at, "New requested time (default: the old one)");
  auto move = std::make_shared<EventWords>();
  Syntax word =
      Add(slots_word, move, "reschedule",
          "Move an event to another time; a failed event is retried. --state FAILED: all of them.",
          RunReschedule);
  word.AddOption("event", move->event, "The event's ID; none with --state");
  word.AddOption("--at", move->at, "New requested time (with --state, default: now)");
  word.AddOption("--config", move->config,
                 "New config (default: the current one); with --state: of this config");
  word.AddOption("--state", move->state, "FAILED: reschedule all dead letters of --config");
  auto due = std::make_shared<EventWords>();
  word = Add(slots_word, due, "due", "List events that are due, oldest first.", RunDue);
  word.AddOption("--config", due->config, "The config").Required();
  word.AddOption("--before", due->before, "Events due by this time (default: now)");
  word.AddOption("--state", due->state,
                 "SCHEDULED (the default), CLAIMED, DONE, FAILED or CANCELLED");
  word.AddOption("--after", due->after, "Where the last page ended, as it was printed");
  word.AddOption("--limit", due->limit, "Maximum number of results")
      .Between(std::size_t{1}, std::size_t{1'000})
      .ShowDefault();
  Add(slots_word, std::make_shared<EventWords>(), "status",
      "Show the backlog of each config and when it will be cleared.", RunStatus);
}

}  // namespace weir::app
