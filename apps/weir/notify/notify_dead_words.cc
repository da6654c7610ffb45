// weir notify message | messages | dead: what became of messages.

#include <iostream>
#include <memory>

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
using Shared = std::shared_ptr<MessageWords>;

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
  if (code == kExitOk) std::cout << (words.remote.json ? json + "]\n" : table.ToString());
  return code;
}

int RunMessages(const MessageWords& words) {
  std::string target = "/api/messages?";
  if (!words.user.empty()) target += "userId=" + UrlEscaped(words.user);
  if (!words.state.empty()) target += "&state=" + UrlEscaped(words.state);
  return PrintRows(
      words, target, "messages",
      {"event", "user", "channel", "state", ">tries", "accepted", "last error"},
      {"eventId", "userId", "channel", "state", "attempts", "acceptedAt", "lastError"});
}

int RunDeadList(const MessageWords& words) {
  const std::string user = words.user.empty() ? "" : "userId=" + UrlEscaped(words.user);
  return PrintRows(words, "/admin/notify/dead?" + user, "deadLetters",
                   {"event", "user", ">tries", "failed", "error"},
                   {"eventId", "userId", "attempts", "failedAt", "error"});
}

/// Which letters a replay or a drop is about; empty: the command line does not say.
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

/// Repeats until the service says that there is no more.
int RunOnDead(const MessageWords& words, const std::string& act, const char* done) {
  const std::string body = Choice(words);
  if (body.empty()) {
    return Fail({Code::kInvalidArgument, "name events, or give --user or --all"});
  }
  simdjson::dom::parser parser;
  std::int64_t count = 0;
  for (bool more = true; more;) {
    Result<ServiceReply> reply = words.remote.Exchange("POST", "/admin/notify/dead/" + act, body);
    if (!reply.ok()) return Fail(reply.error());
    if (!reply->ok()) return FailRefused(*reply);
    element answer;
    if (parser.parse(reply->body).get(answer) != simdjson::SUCCESS) {
      return Fail({Code::kUnavailable, "unexpected response"});
    }
    const std::int64_t now = NumberOf(answer, done);
    more = answer["more"].get(more) == simdjson::SUCCESS && more && now > 0;
    count += now;
    if (words.remote.json) std::cout << reply->body << '\n';
  }
  if (!words.remote.json) std::cout << count << " " << done << '\n';
  return count > 0 || words.ids.empty() ? kExitOk : kExitNo;
}

CLI::App* Word(CLI::App& parent, const char* name, const char* about, const Shared& words,
               std::function<int(const MessageWords&)> run, int& exit_code) {
  CLI::App* word = parent.add_subcommand(name, about);
  words->remote.AddTo(*word);
  word->callback([words, run = std::move(run), &exit_code] { exit_code = run(*words); });
  return word;
}

void AddActs(CLI::App& dead, int& exit_code) {
  struct Act {
    const char* name;
    const char* about;
    const char* done;
  };
  for (const Act& act : {Act{"replay", "Put dead letters back into the queue.", "replayed"},
                         Act{"drop", "Forget dead letters for good.", "dropped"}}) {
    auto words = std::make_shared<MessageWords>();
    CLI::App* word = Word(
        dead, act.name, act.about, words,
        [act](const MessageWords& given) { return RunOnDead(given, act.name, act.done); },
        exit_code);
    word->add_option("event", words->ids, "Ids of messages");
    word->add_option("--user", words->user, "All of this user");
    word->add_flag("--all", words->all, "All there are");
  }
}

}  // namespace

void AddMessageWords(CLI::App& notify, int& exit_code) {
  auto one = std::make_shared<MessageWords>();
  Word(
      notify, "message", "Show what became of a message.", one,
      [](const MessageWords& words) {
        return SendNotify(words.remote, "GET", "/api/messages/" + UrlEscaped(words.id), {});
      },
      exit_code)
      ->add_option("event", one->id, "The eventId from the answer to the send")
      ->required();
  auto many = std::make_shared<MessageWords>();
  CLI::App* list =
      Word(notify, "messages", "List messages by user, by state or both, newest first.", many,
           RunMessages, exit_code);
  list->add_option("--user", many->user, "The user's id");
  list->add_option("--state", many->state, "queued, failed, sent, dead or dropped");
  list->add_option("--limit", many->limit, "How many at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

void AddDeadWords(CLI::App& notify, int& exit_code) {
  CLI::App* dead = notify.add_subcommand(
      "dead", "Messages that could not be delivered: list, show, replay, drop.");
  dead->require_subcommand(1);
  auto list = std::make_shared<MessageWords>();
  CLI::App* all =
      Word(*dead, "list", "List dead letters, oldest first.", list, RunDeadList, exit_code);
  all->add_option("--user", list->user, "Only of this user");
  all->add_option("--limit", list->limit, "How many at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  auto one = std::make_shared<MessageWords>();
  Word(
      *dead, "show", "Show a dead letter with its text.", one,
      [](const MessageWords& words) {
        return SendNotify(words.remote, "GET", "/admin/notify/dead/" + UrlEscaped(words.id), {});
      },
      exit_code)
      ->add_option("event", one->id, "The id of the message")
      ->required();
  AddActs(*dead, exit_code);
}

}  // namespace weir::app
