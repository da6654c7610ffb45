#include <simdjson.h>

#include <iostream>
#include <memory>

#include "base/instant.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "slots/slots_feed.h"
#include "slots/slots_target.h"
#include "slots/slots_words.h"
#include "slots/time.h"

// weir slots assign: a slot for one event, or for each event of a file, on the screen. `import` is
// for feeds of any size; this sends one request, which is done completely or not at all.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

constexpr int kTooMany = 429;

struct AssignWords {
  Remote remote;
  std::string event;
  std::string file;
  std::string tenant;
  std::string payload;
  std::string at;
  FeedDefaults defaults;
};

/// Prints slots as answered; returns whether every event has one.
template <typename Slots>
bool Show(const Slots& answered, bool json) {
  Table table({"event", "status", "scheduled", "window", ">delay ms", ""});
  bool all = true;
  for (const dom::element slot : answered) {
    const std::string status = TextOf(slot, "status");
    all = all && (status == "NEW" || status == "EXISTING");
    table.Add({TextOf(slot, "eventId"), status, TextOf(slot, "scheduledTime"),
               TextOf(slot, "windowStart"), TextOf(slot, "delayMs"), TextOf(slot, "message")});
  }
  if (!json) std::cout << table.ToString();
  return all;
}

int AssignOne(const AssignWords& words) {
  const std::string body = JsonText([&](JsonWriter& json) {
    AppendAsk(json, {.event_id = words.event,
                     .config = words.defaults.config,
                     .requested = *words.defaults.requested,
                     .tenant = words.tenant,
                     .payload = words.payload});
  });
  const Result<ServiceReply> reply = words.remote.Exchange("POST", "/api/v1/slots", body);
  if (!reply.ok()) return Fail(reply.error());
  if (!reply->ok()) {
    const int code = FailRefused(*reply);
    return reply->status == kTooMany ? kExitNo : code;  // no window has room: a "no", not a failure
  }
  if (words.remote.json) std::cout << reply->body << '\n';
  dom::parser parser;
  dom::element slot;
  if (parser.parse(reply->body).get(slot) != simdjson::SUCCESS) return FailUnexpected();
  return Show(std::vector{slot}, words.remote.json) ? kExitOk : kExitNo;
}

/// The events of the file as the body of a batch. None of them may be invalid.
Result<std::string> ReadBatch(const AssignWords& words) {
  Result<FeedReader> feed = FeedReader::Open(words.file, words.defaults);
  if (!feed.ok()) return Error{Code::kInvalidArgument, feed.error().message};
  std::string body;
  JsonWriter json(body);
  json.BeginObject().Key("events").BeginArray();
  std::size_t count = 0;
  while (const std::optional<FeedEvent> event = feed->Next()) {
    if (!event->status.ok()) {
      return Error{Code::kInvalidArgument, words.file + ": " + event->status.error().message};
    }
    if (++count > slots::kMaxBatch) {
      return Error{Code::kInvalidArgument, words.file + ": more than " +
                                               std::to_string(slots::kMaxBatch) +
                                               " events; for larger files use weir slots import"};
    }
    AppendAsk(json, event->ask);
  }
  if (Status s = feed->ended(); !s.ok()) return s.error();
  if (count == 0) return Error{Code::kInvalidArgument, words.file + ": has no events"};
  if (const std::string ignored = feed->Ignored(); !ignored.empty()) {
    std::cerr << "weir: " << ignored << '\n';
  }
  json.EndArray().EndObject();
  return body;
}

int AssignFile(const AssignWords& words) {
  const Result<std::string> body = ReadBatch(words);
  if (!body.ok()) return Fail(body.error());
  return words.remote.Ask(
      "POST", "/api/v1/slots/batch", *body, [&](const ServiceReply& reply) -> int {
        dom::parser parser;
        dom::array answered;
        if (parser.parse(reply.body)["slots"].get(answered) != simdjson::SUCCESS) {
          return FailUnexpected();
        }
        return Show(answered, words.remote.json) ? kExitOk : kExitNo;
      });
}

int RunAssign(AssignWords& words) {
  if (words.event.empty() == words.file.empty()) {
    return Fail({Code::kInvalidArgument, "give the ID of an event, or --file"});
  }
  if (!words.event.empty() && words.defaults.config.empty()) {
    return Fail({Code::kInvalidArgument, "--config is missing"});
  }
  const Result<slots::Millis> requested = ReadAt(words.at.empty() ? "now" : words.at);
  if (!requested.ok()) return Fail(requested.error());
  words.defaults.requested = *requested;
  return words.file.empty() ? AssignOne(words) : AssignFile(words);
}

}  // namespace

Result<slots::Millis> ReadAt(const std::string& at) {
  if (at == "now") return SystemClock::Get().Now() / 1'000'000;
  Result<slots::Millis> instant = slots::ParseInstant(at);
  if (!instant.ok()) return Error{instant.error().code, "--at " + instant.error().message};
  return instant;
}

void AddSlotsAssign(Syntax slots_word) {
  auto words = std::make_shared<AssignWords>();
  Syntax word =
      slots_word.AddSubcommand("assign", "Assign a slot to one event, or to each event of a file.");
  word.AddOption("event", words->event, "The event's ID");
  word.AddOption("--file", words->file,
                 "A .csv or .jsonl file of up to 10,000 events, as for import");
  word.AddOption("--config", words->defaults.config, "Config of events that do not name one");
  word.AddOption("--at", words->at, "Requested time of events that have none (default: now)");
  word.AddOption("--tenant", words->tenant, "The event's tenant");
  word.AddOption("--payload", words->payload, "The event's payload, for whoever executes it");
  words->remote.AddTo(word);
  word.Footer(
      "The same command again, with the same --at, returns the same slot. An ID that was used "
      "with\n"
      "another config, time, tenant or payload is refused. Exits with 1 if an event got no "
      "slot.\n\n"
      "  weir slots assign pay-1 --config default --at 2025-06-01T12:00:00Z\n"
      "  weir slots assign --file feed.csv --config default");
  word.OnRun([words] { return RunAssign(*words); });
}

}  // namespace weir::app
