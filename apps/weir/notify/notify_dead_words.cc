// weir notify message | messages | dead: what became of messages.

#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "console.h"
#include "notify/notify_words.h"
#include "protocol/http/error.h"
#include "remote/json_fields.h"

namespace weir::app {
namespace {

using simdjson::dom::element;

struct MessageWords {
  Remote remote;
  std::string id;
  std::string user;
  std::string state;
  std::size_t limit = 20;
  std::vector<std::string> ids;
  bool all = false;
};
using SharedMessageWords = std::shared_ptr<MessageWords>;

/// A table, or with --json a list.
int PrintRows(const MessageWords& words, const std::string& target, const char* list,
              const std::vector<std::string>& head, const std::vector<const char*>& fields) {
  Table table(head);
  std::string json = "[";
  const int code = EachNotifyRow(words.remote, target, list, words.limit, [&](element row) {
    json += (json.size() > 1 ? "," : "") + std::string(simdjson::minify(row));
    std::vector<std::string> cells;
    cells.reserve(fields.size());
    for (const char* field : fields) cells.push_back(TextOf(row, field));
    table.Add(cells);
  });
  if (code == kExitOk) std::cout << (words.remote.json ? json + "]\n" : table.ToList());
  return code;
}

int RunMessages(const MessageWords& words) {
  std::string target = "/api/messages?";
  if (!words.user.empty()) target += "userId=" + UrlEscaped(words.user);
  if (!words.state.empty()) target += "&state=" + UrlEscaped(words.state);
  return PrintRows(
      words, target, "messages",
      {"event", "user", "channel", "state", ">tries", "accepted", "not before", "last error"},
      {"eventId", "userId", "channel", "state", "attempts", "acceptedAt", "notBefore",
       "lastError"});
}

int RunDeadList(const MessageWords& words) {
  const std::string user = words.user.empty() ? "" : "userId=" + UrlEscaped(words.user);
  return PrintRows(words, "/admin/notify/dead?" + user, "deadLetters",
                   {"event", "user", ">tries", "failed", "error"},
                   {"eventId", "userId", "attempts", "failedAt", "error"});
}

/// The letters that a replay or a drop is about; empty: the command line does not say.
std::string Choice(const MessageWords& words) {
  if (words.ids.empty() && !words.all && words.user.empty()) return {};
  return JsonObject([&](JsonWriter& json) {
    if (!words.ids.empty()) {
      json.Key("eventIds").BeginArray();
      for (const std::string& id : words.ids) json.Value(id);
      json.EndArray();
    } else if (words.all) {
      json.Field("all", true);
    } else {
      json.Field("userId", words.user);
    }
  });
}

/// How many of the messages in an answer are not in `seen` yet; adds them.
std::int64_t NoteNew(element answer, std::set<std::string, std::less<>>& seen) {
  simdjson::dom::array ids;
  if (answer["eventIds"].get(ids) != simdjson::SUCCESS) return 0;
  std::int64_t fresh = 0;
  for (const element one : ids) {
    std::string_view id;
    if (one.get(id) == simdjson::SUCCESS && seen.emplace(id).second) ++fresh;
  }
  return fresh;
}

/// Nothing was done with the letters that were named; says why about the first.
int FailUntouched(const MessageWords& words, const std::string& done) {
  const std::string& id = words.ids.front();
  const Result<ServiceReply> letter =
      words.remote.Exchange("GET", "/admin/notify/dead/" + UrlEscaped(id));
  if (!letter.ok()) return Fail(letter.error());
  if (!letter->ok()) return FailRefused(*letter);
  return Fail({Code::kFailedPrecondition,
               "dead letter '" + id + "' cannot be " + done + "; see `weir notify dead show`"});
}

/// Repeats until the service reports that there are no more. A replayed message dies again at once
/// if its provider still refuses it; it is not replayed over and over.
int RunOnDead(const MessageWords& words, const std::string& act, const char* done) {
  const std::string body = Choice(words);
  if (body.empty()) {
    return Fail({Code::kInvalidArgument, "give message IDs, --user or --all"});
  }
  simdjson::dom::parser parser;
  std::int64_t count = 0;
  std::set<std::string, std::less<>> seen;
  for (bool more = true; more;) {
    Result<ServiceReply> reply = words.remote.Exchange("POST", "/admin/notify/dead/" + act, body);
    if (!reply.ok()) return Fail(reply.error());
    if (!reply->ok()) return FailRefused(*reply);
    element answer;
    if (parser.parse(reply->body).get(answer) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    const std::int64_t now = NoteNew(answer, seen);
    more = answer["more"].get(more) == simdjson::SUCCESS && more && now > 0;
    count += now;
    if (words.remote.json) std::cout << reply->body << '\n';
  }
  if (count == 0 && !words.ids.empty()) return FailUntouched(words, done);
  if (!words.remote.json) std::cout << count << " " << done << '\n';
  return kExitOk;
}

Syntax Word(Syntax parent, const char* name, const char* about, const SharedMessageWords& words,
            std::function<int(const MessageWords&)> run) {
  Syntax word = parent.AddSubcommand(name, about);
  words->remote.AddTo(word);
  word.OnRun([words, run = std::move(run)] { return run(*words); });
  return word;
}

void AddActs(Syntax dead) {
  struct Act {
    const char* name;
    const char* about;
    const char* done;
  };
  for (const Act& act : {Act{"replay", "Put dead letters back into the queue.", "replayed"},
                         Act{"drop", "Delete dead letters.", "dropped"}}) {
    auto words = std::make_shared<MessageWords>();
    Syntax word = Word(dead, act.name, act.about, words, [act](const MessageWords& given) {
      return RunOnDead(given, act.name, act.done);
    });
    word.AddOption("event", words->ids, "Message IDs");
    word.AddOption("--user", words->user, "All of this user's dead letters");
    word.AddFlag("--all", words->all, "All dead letters");
  }
}

}  // namespace

void AddMessageWords(Syntax notify) {
  auto one = std::make_shared<MessageWords>();
  Word(notify, "message", "Show the state of a message.", one,
       [](const MessageWords& words) {
         return SendNotify(words.remote, "GET", "/api/messages/" + UrlEscaped(words.id), {});
       })
      .AddOption("event", one->id, "The eventId returned by send")
      .Required();
  auto many = std::make_shared<MessageWords>();
  Syntax list = Word(notify, "messages", "List messages by user, by state or both, newest first.",
                     many, RunMessages);
  list.AddOption("--user", many->user, "The user's ID");
  list.AddOption("--state", many->state, "queued, failed, sent, dead or dropped");
  list.AddOption("--limit", many->limit, "Maximum number of results")
      .Between(1, 1'000'000)
      .ShowDefault();
}

void AddDeadWords(Syntax notify) {
  Syntax dead = notify.AddSubcommand(
      "dead", "List, show, replay or delete messages that could not be delivered.");
  dead.RequireSubcommand();
  auto list = std::make_shared<MessageWords>();
  Syntax all = Word(dead, "list", "List dead letters, oldest first.", list, RunDeadList);
  all.AddOption("--user", list->user, "Only this user's");
  all.AddOption("--limit", list->limit, "Maximum number of results")
      .Between(1, 1'000'000)
      .ShowDefault();
  auto one = std::make_shared<MessageWords>();
  Word(dead, "show", "Show a dead letter with its text.", one,
       [](const MessageWords& words) {
         return SendNotify(words.remote, "GET", "/admin/notify/dead/" + UrlEscaped(words.id), {});
       })
      .AddOption("event", one->id, "The message ID")
      .Required();
  AddActs(dead);
}

}  // namespace weir::app
