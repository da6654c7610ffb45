#include <iostream>
#include <memory>

#include "base/json_text.h"
#include "command.h"
#include "console.h"
#include "protocol/http/error.h"
#include "remote/remote.h"

// weir notify config | send | quota: the notification gateway of a running service.

namespace weir::app {
namespace {

struct Words {
  Remote remote;
  std::string user;
  std::string message;
  std::int64_t limit = 0;
  std::string window = {};  ///< minutes, or with a unit
};

/// The gateway answers 429 when a user's cap is reached, which is a no and not a failure.
int Send(const Words& words, std::string_view method, const std::string& target,
         std::string_view body) {
  Result<ServiceReply> reply = words.remote.Exchange(method, target, body);
  if (!reply.ok()) return Fail(reply.error());
  if (reply->ok()) {
    // Without --json no name may steer the terminal; JSON alone escapes only control characters.
    std::cout << (words.remote.json ? reply->body : Shown(reply->body, reply->body.size() * 8 + 1))
              << '\n';
    return kExitOk;
  }
  const int code = FailRefused(*reply);
  return reply->status == 429 ? kExitNo : code;
}

std::string Body(const Words& words, std::string_view more) {
  std::string body = "{\"userId\":";
  AppendJsonString(body, words.user);
  return body.append(more).append("}");
}

int RunConfig(const Words& words) {
  if (words.limit == 0 && words.window.empty()) {
    return Send(words, "GET", "/api/config/" + UrlEscaped(words.user), {});
  }
  std::string body = ",\"rateLimit\":" + std::to_string(words.limit) + ",\"timeWindow\":";
  const bool plain = words.window.find_first_not_of("0123456789") == std::string::npos;
  if (plain) {
    body += words.window;
  } else {
    AppendJsonString(body, words.window);
  }
  return Send(words, "POST", "/api/config", Body(words, body));
}

int RunSend(const Words& words) {
  std::string message = ",\"message\":";
  AppendJsonString(message, words.message);
  return Send(words, "POST", "/api/send", Body(words, message));
}

CLI::App* AddWord(CLI::App& parent, const char* name, const char* about,
                  const std::shared_ptr<Words>& words, int (*run)(const Words&), int& exit_code) {
  CLI::App* word = parent.add_subcommand(name, about);
  word->add_option("user", words->user, "The user's id")->required();
  words->remote.AddTo(*word);
  word->callback([words, run, &exit_code] { exit_code = run(*words); });
  return word;
}

void Configure(CLI::App& word, int& exit_code) {
  word.require_subcommand(1);
  auto config = std::make_shared<Words>();
  CLI::App* set = AddWord(word, "config", "Show a user's cap, or set it with --limit and --window.",
                          config, RunConfig, exit_code);
  CLI::Option* limit = set->add_option("--limit", config->limit, "Messages per window");
  CLI::Option* window =
      set->add_option("--window", config->window, "Minutes, or with a unit: 2h, 1d, PT90M");
  limit->needs(window);
  window->needs(limit);
  auto send = std::make_shared<Words>();
  AddWord(word, "send", "Send a message. Exits with 1 if the user's cap is reached.", send, RunSend,
          exit_code)
      ->add_option("message", send->message, "What to send")
      ->required();
  AddWord(
      word, "quota", "Show what is left of a user's cap.", std::make_shared<Words>(),
      [](const Words& words) {
        return Send(words, "GET", "/api/quota/" + UrlEscaped(words.user), {});
      },
      exit_code);
}

const Command kNotify("notify", "Messages under per-user caps: config, send, quota.", Configure);

}  // namespace
}  // namespace weir::app
