#include <chrono>
#include <iostream>
#include <memory>

#include "base/duration.h"
#include "base/got.h"
#include "base/json_writer.h"
#include "notify/notify.h"
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
  std::string window = {};
  bool reset_count = false;
};

std::string ConfigPath(const Words& words) {
  std::string path = "/api/config/" + UrlEscaped(words.user);
  if (!words.channel.empty()) path += "/channels/" + UrlEscaped(words.channel);
  return path;
}

/// --window as the JSON of timeWindow.
Result<std::string> WindowValue(const std::string& text) {
  const Result<std::chrono::nanoseconds> span = ParseDuration(text);
  constexpr std::chrono::minutes kMost(notify::kMaxTimeWindow);
  if (!span.ok() || *span <= std::chrono::nanoseconds(0) || *span > kMost ||
      *span % std::chrono::minutes(1) != std::chrono::nanoseconds(0)) {
    return Error{Code::kInvalidArgument, "--window: expected whole minutes from 1 to " +
                                             std::to_string(kMost.count()) +
                                             ", such as 60m, 2h or 1d" + Got(text)};
  }
  return JsonText([&](JsonWriter& json) { json.Value(text); });
}

int RunConfig(const Words& words) {
  if (words.limit == 0 && words.window.empty()) {
    return SendNotify(words.remote, "GET", ConfigPath(words), {});
  }
  const Result<std::string> window = WindowValue(words.window);
  if (!window.ok()) return Fail(window.error());
  const std::string body = JsonObject([&](JsonWriter& json) {
    json.Field("userId", words.user).Field("rateLimit", words.limit);
    json.RawField("timeWindow", *window).Field("keepCount", !words.reset_count);
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

Syntax AddWord(Syntax parent, const char* name, const char* about,
               const std::shared_ptr<Words>& words, int (*run)(const Words&)) {
  Syntax word = parent.AddSubcommand(name, about);
  word.AddOption("user", words->user, "The user's ID").Required();
  words->remote.AddTo(word);
  word.OnRun([words, run] { return run(*words); });
  return word;
}

void AddConfigWord(Syntax word) {
  auto config = std::make_shared<Words>();
  Syntax set = AddWord(word, "config", "Show a user's cap, or set it with --limit and --window.",
                       config, RunConfig);
  Option limit = set.AddOption("--limit", config->limit, "Messages per window")
                     .Between(std::int64_t{1}, notify::kMaxRateLimit);
  Option window = set.AddOption("--window", config->window,
                                "Length of the window, in whole minutes: 90m, 2h, 1d, PT90M");
  set.AddFlag("--reset-count", config->reset_count,
              "Start a new window with a count of 0; without it, the window goes on")
      .Needs(limit);
  limit.Needs(window);
  window.Needs(limit);
  const char* const about = "A cap for this channel only, in addition to the user's";
  set.AddOption("--channel", config->channel, about);
  auto remove = std::make_shared<Words>();
  AddWord(word, "remove", "Remove a user's cap.", remove, RunRemove)
      .AddOption("--channel", remove->channel, about);
}

void Configure(Syntax word) {
  word.RequireSubcommand();
  AddConfigWord(word);
  auto send = std::make_shared<Words>();
  Syntax sends = AddWord(word, "send", "Send a message; exit with 1 if the user's cap is reached.",
                         send, RunSend);
  sends.AddOption("message", send->message, "The message").Required();
  sends.AddOption("--channel", send->channel, "The channel (default: sms)");
  sends.AddOption("--to", send->recipient, "A phone number or address (default: the user's ID)");
  AddWord(word, "quota", "Show how much of a user's cap is left.", std::make_shared<Words>(),
          RunQuota);
  AddMessageWords(word);
  AddDeadWords(word);
  AddUserWords(word);
}

const Command kNotify("notify", "Send messages under per-user caps; track and replay them.",
                      Configure);

}  // namespace
}  // namespace weir::app::notify_command
