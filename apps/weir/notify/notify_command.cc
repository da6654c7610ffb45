#include <iostream>
#include <memory>

#include "base/json_writer.h"
#include "notify/notify_words.h"
#include "protocol/http/error.h"

// weir notify …: the notification gateway of a running service.

namespace weir::app::notify_command {

namespace {

struct Words {
  Remote remote;
  std::string user;
  std::string message;
  std::string channel;
  std::string recipient;
  std::int64_t limit = 0;
  std::string window = {};  ///< minutes, or with a unit
};

std::string ConfigPath(const Words& words) {
  std::string path = "/api/config/" + UrlEscaped(words.user);
  if (!words.channel.empty()) path += "/channels/" + UrlEscaped(words.channel);
  return path;
}

int RunConfig(const Words& words) {
  if (words.limit == 0 && words.window.empty()) {
    return SendNotify(words.remote, "GET", ConfigPath(words), {});
  }
  const bool plain = words.window.find_first_not_of("0123456789") == std::string::npos;
  const std::string body = JsonObject([&](JsonWriter& json) {
    json.Field("userId", words.user).Field("rateLimit", words.limit).Key("timeWindow");
    if (plain) {
      json.Raw(words.window);
    } else {
      json.Value(words.window);
    }
  });
  if (!words.channel.empty()) return SendNotify(words.remote, "PUT", ConfigPath(words), body);
  return SendNotify(words.remote, "POST", "/api/config", body);
}

int RunSend(const Words& words) {
  const std::string body = JsonObject([&](JsonWriter& json) {
    json.Field("userId", words.user).Field("message", words.message);
    if (!words.channel.empty()) json.Field("channel", words.channel);
    if (!words.recipient.empty()) json.Field("recipient", words.recipient);
  });
  return SendNotify(words.remote, "POST", "/api/send", body);
}

int RunQuota(const Words& words) {
  return SendNotify(words.remote, "GET", "/api/quota/" + UrlEscaped(words.user), {});
}

int RunRemove(const Words& words) {
  return SendNotify(words.remote, "DELETE", ConfigPath(words), {});
}

CLI::App* AddWord(CLI::App& parent, const char* name, const char* about,
                  const std::shared_ptr<Words>& words, int (*run)(const Words&), int& exit_code) {
  CLI::App* word = parent.add_subcommand(name, about);
  word->add_option("user", words->user, "The user's id")->required();
  words->remote.AddTo(*word);
  word->callback([words, run, &exit_code] { exit_code = run(*words); });
  return word;
}

void AddConfigWord(CLI::App& word, int& exit_code) {
  auto config = std::make_shared<Words>();
  CLI::App* set = AddWord(word, "config", "Show a user's cap, or set it with --limit and --window.",
                          config, RunConfig, exit_code);
  CLI::Option* limit = set->add_option("--limit", config->limit, "Messages per window");
  CLI::Option* window =
      set->add_option("--window", config->window, "Minutes, or with a unit: 2h, 1d, PT90M");
  limit->needs(window);
  window->needs(limit);
  const char* const about = "The cap of one channel, beside that of the user";
  set->add_option("--channel", config->channel, about);
  auto remove = std::make_shared<Words>();
  AddWord(word, "remove", "Remove a user's cap.", remove, RunRemove, exit_code)
      ->add_option("--channel", remove->channel, about);
}

void Configure(CLI::App& word, int& exit_code) {
  word.require_subcommand(1);
  AddConfigWord(word, exit_code);
  auto send = std::make_shared<Words>();
  CLI::App* sends =
      AddWord(word, "send", "Send a message. Exits with 1 if the user's cap is reached.", send,
              RunSend, exit_code);
  sends->add_option("message", send->message, "What to send")->required();
  sends->add_option("--channel", send->channel, "sms unless given");
  sends->add_option("--to", send->recipient, "A number or an address; the user's id unless given");
  AddWord(word, "quota", "Show what is left of a user's cap.", std::make_shared<Words>(), RunQuota,
          exit_code);
  AddMessageWords(word, exit_code);
  AddDeadWords(word, exit_code);
  AddUserWords(word, exit_code);
}

const Command kNotify("notify", "Messages under per-user caps: send, follow, replay, users.",
                      Configure);

}  // namespace
}  // namespace weir::app::notify_command
