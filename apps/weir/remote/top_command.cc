#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

#include "base/json_writer.h"
#include "command.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/remote.h"

// weir top: what the service does now, and for which keys.

namespace weir::app::top_command {
namespace {

namespace dom = simdjson::dom;

struct Words {
  Remote remote;
  std::string kind = "all";
  int n = 10;
  double interval = 1;
  bool once = false;
  std::size_t widest = kWhole;  ///< of a name: on a screen that is redrawn, a line stays one
};

// A signal handler can access nothing else.
volatile std::sig_atomic_t interrupted = 0;

std::uint64_t CountOf(dom::element object, const char* field) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, NumberOf(object, field)));
}

/// One line per second of the last minute, as a row of bars.
std::string Sparkline(dom::array seconds, const char* field) {
  constexpr std::array<const char*, 9> kBars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t kWidth = 60;
  std::vector<std::uint64_t> values;
  for (const dom::element second : seconds) values.push_back(CountOf(second, field));
  if (values.size() > kWidth) values.erase(values.begin(), values.end() - kWidth);
  const std::uint64_t peak = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const std::uint64_t most = std::max<std::uint64_t>(1, peak);
  std::string line;
  for (const std::uint64_t value : values) line += kBars[(value * 8 + most - 1) / most];
  const std::uint64_t now = values.empty() ? 0 : values.back();
  return line + "  " + Grouped(now) + "/s, peak " + Grouped(peak) + "/s\n";
}

Result<std::string> Get(const Remote& remote, const std::string& target) {
  Result<ServiceReply> reply = remote.Exchange("GET", target);
  if (!reply.ok()) return reply.error();
  if (reply->ok()) return std::move(reply->body);
  return Error{Code::kPermissionDenied,
               std::to_string(reply->status) + ": " + MessageOf(reply->body)};
}

std::string KeyTable(const std::string& body, const std::string& kind, std::size_t widest) {
  dom::parser parser;
  dom::array keys;
  if (parser.parse(body)["keys"].get(keys) != simdjson::SUCCESS) return {};
  Table table({kind == "shadow" ? "shadow: would be limited" : kind, ">in the last minute",
               ">± at most", "policy"},
              widest);
  for (const dom::element key : keys) {
    table.Add({TextOf(key, "key"), Grouped(CountOf(key, "count")), Grouped(CountOf(key, "error")),
               TextOf(key, "policy")});
  }
  if (keys.size() == 0) return table.ToString() + "(none; counts are up to a second old)\n";
  return table.ToString();
}

std::vector<std::string> Kinds(const Words& words) {
  if (words.kind == "both") return {"limited", "hot"};
  if (words.kind == "all") return {"limited", "shadow", "hot"};
  return {words.kind};
}

/// The whole view as text, or as one JSON object.
Result<std::string> View(const Words& words) {
  Result<std::string> live = Get(words.remote, "/admin/live");
  if (!live.ok()) return live.error();
  std::string whole;
  JsonWriter json(whole);
  json.BeginObject().RawField("live", *live);
  dom::parser parser;
  dom::element about;
  dom::array seconds;
  if (parser.parse(*live).get(about) != simdjson::SUCCESS ||
      about["perSecond"].get(seconds) != simdjson::SUCCESS) {
    return Error{Code::kUnavailable, "unexpected response"};
  }
  std::string text =
      "allowed " + Sparkline(seconds, "allowed") + "limited " + Sparkline(seconds, "limited");
  dom::element store;
  if (about["store"].get(store) == simdjson::SUCCESS) {
    text += "store   " + Shown(TextOf(store, "kind")) + " " + Shown(TextOf(store, "state")) +
            ", breaker " + Shown(TextOf(store, "breaker")) + "\n";
  }
  for (const std::string& one : Kinds(words)) {
    Result<std::string> top =
        Get(words.remote, "/admin/top?kind=" + one + "&n=" + std::to_string(words.n));
    if (!top.ok()) return top.error();
    json.RawField(one, *top);
    const std::string table = KeyTable(*top, one, words.widest);
    // Most services have no policy on trial.
    dom::array keys;
    const bool empty =
        parser.parse(*top)["keys"].get(keys) == simdjson::SUCCESS && keys.size() == 0;
    if (one != "shadow" || words.kind == "shadow" || !empty) text += "\n" + table;
  }
  json.EndObject();
  return words.remote.json ? whole + "\n" : text;
}

int Run(Words& words) {
  constexpr std::size_t kWidestOnScreen = 60;
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const bool live = !words.once && isatty(STDOUT_FILENO) != 0;
  if (live) words.widest = kWidestOnScreen;
  while (interrupted == 0) {
    Result<std::string> view = View(words);
    if (!view.ok()) return Fail(view.error());
    if (live) std::cout << "\x1b[H\x1b[J";
    std::cout << *view << std::flush;
    if (words.once) break;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(words.interval);
    while (interrupted == 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return kExitOk;
}

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  word.AddOption("--kind", words->kind,
                 "Which keys: hot, limited, shadow (limited by shadow policies), both (hot and "
                 "limited) or all")
      .OneOf({"hot", "limited", "shadow", "both", "all"})
      .ShowDefault();
  word.AddOption("-n", words->n, "Number of keys of each kind").Between(1, 100).ShowDefault();
  word.AddOption("--interval", words->interval, "Seconds between refreshes")
      .AllowUnits()
      .Between(0.1, 3600.0)
      .ShowDefault();
  word.AddFlag("--once", words->once, "Print once and exit");
  words->remote.AddTo(word);
  word.Footer(
      "Counts are up to a second old. On a terminal, long names are cut; --once prints them "
      "whole.");
  word.OnRun([words] { return Run(*words); });
}

const Command kTop("top", "Watch the request rates and the busiest keys.", Configure);

}  // namespace
}  // namespace weir::app::top_command
