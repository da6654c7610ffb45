#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/url.h"
#include "command.h"
#include "console.h"
#include "remote/remote.h"
#include "slots/forecast.h"
#include "slots/slots_import.h"
#include "slots/slots_plot.h"
#include "slots/slots_target.h"
#include "slots/slots_words.h"
#include "slots/window.h"

// weir slots import | forecast | plot | verify; config and assign have files of their own.

namespace weir::app::slots_command {
namespace {

constexpr std::size_t kPage = 10'000;
constexpr int kSomeRefused = 3;  // some events got no slot, or their ids are taken
constexpr int kProblems = 2;     // found by verify

/// Shared by all words under `weir slots`. One per process.
struct Where {
  Access access;
  std::string store = {};

  void AddTo(Syntax word) {
    access.AddTo(word);
    word.AddOption("--store", store,
                   "Use this store directly instead: sqlite:FILE or postgres://…");
  }

  Result<std::unique_ptr<SlotsTarget>> Open() const {
    return store.empty() ? OpenService(access.Open()) : OpenStore(store);
  }

  /// Without secrets.
  std::string Name() const {
    if (store.empty()) return WithoutSecrets(access.service.url);
    if (!store.starts_with("sqlite:")) return WithoutSecrets(store);
    std::error_code error;
    const auto path = std::filesystem::absolute(store.substr(7), error);
    return "sqlite:" + path.lexically_normal().string();
  }
};

int Fail(const Error& error) {
  std::cerr << "weir: " << Shown(error.message, 1000) << '\n';
  // A file that cannot be written, or a database that failed.
  return error.code == Code::kInternal ? kExitNo : ExitCodeOf(error);
}

Result<std::vector<slots::WindowLoad>> ListAll(SlotsTarget& target, const std::string& config,
                                               slots::Millis from, slots::Millis to) {
  std::vector<slots::WindowLoad> all;
  for (;;) {
    auto page = target.ListWindows(config, from, kPage);
    if (!page.ok()) return page.error();
    for (const slots::WindowLoad& window : *page) {
      if (window.start > to) return all;
      all.push_back(window);
    }
    if (page->size() < kPage) break;
    from = all.back().start + 1;
  }
  // Rows that were created in advance hold nothing and would only stretch the picture.
  while (!all.empty() && all.back().used() == 0) all.pop_back();
  return all;
}

// --- import --------------------------------------------------------------------------------------

struct ImportWords {
  Where where;
  ImportOptions options;
  std::string at;
};

// All batches have one time, which the config would refuse while later ones are sent. If the config
// cannot be read, or events name others, the answers say so.
Status CheckNow(SlotsTarget& target, const std::string& name) {
  if (name.empty()) return {};
  const Result<slots::Config> config = target.GetConfig(name);
  if (!config.ok() || config->past != slots::Past::kRefuse) return {};
  return Invalid("--at now: config '" + name +
                 "' has past: refuse, so events that are sent more than 10 s from now would get no "
                 "slot; give a later time, or use weir slots assign --file");
}

// 3 has another meaning here.
int FailImport(const Error& error) {
  const int code = Fail(error);
  return code == kExitUnreachable ? kExitNo : code;
}

int RunImport(ImportWords& words) {
  if (const Result<std::ifstream> feed = OpenFile(words.options.feed); !feed.ok()) {
    return FailImport(Invalid(words.options.feed + ": " + feed.error().message));
  }
  words.options.target = words.where.Name();
  if (!words.at.empty()) {
    const Result<slots::Millis> at = ReadAt(words.at);
    if (!at.ok()) return FailImport(at.error());
    words.options.defaults.requested = *at;
  }
  auto target = words.where.Open();
  if (!target.ok()) return FailImport(target.error());
  if (words.at == "now") {
    const Status taken = CheckNow(**target, words.options.defaults.config);
    if (!taken.ok()) return FailImport(taken.error());
    std::cerr << "weir: requested time: " << slots::FormatInstant(*words.options.defaults.requested)
              << " (to continue if interrupted, give it as --at; configs with past: refuse accept "
                 "it for 10 s)\n";
  }
  Result<ImportSummary> summary = Import(**target, words.options);
  if (!summary.ok()) return FailImport(summary.error());
  std::cout << Counted(summary->events, "event") << ": " << summary->fresh << " new, "
            << summary->existing << " existing, " << summary->refused << " refused";
  if (summary->conflicts > 0) std::cout << ", " << summary->conflicts << " in conflict";
  if (summary->cancelled > 0) std::cout << ", " << summary->cancelled << " cancelled";
  if (summary->resumed > 0) {
    std::cout << " (of these, " << summary->resumed << (summary->resumed == 1 ? " was" : " were")
              << " answered before the interruption)";
  }
  std::cout << "; results in " << summary->out;
  if (summary->last_window > 0) {
    std::cout << "; last window " << slots::FormatInstant(summary->last_window);
  }
  std::cout << '\n';
  return summary->refused + summary->conflicts > 0 ? kSomeRefused : kExitOk;
}

void AddImport(Syntax slots_word) {
  auto words = std::make_shared<ImportWords>();
  Syntax word =
      slots_word.AddSubcommand("import", "Assign a slot to every event of a feed; safe to repeat.");
  words->where.AddTo(word);
  word.AddOption("feed", words->options.feed, "The feed, a .csv or .jsonl file").Required();
  word.AddOption("--config", words->options.defaults.config,
                 "Config of events that do not name one");
  word.AddOption("--at", words->at, "Requested time of events that have none, or now");
  word.AddOption("--out", words->options.out,
                 "File for the results, .csv or .jsonl (default: next to the feed)");
  word.AddOption("--batch", words->options.batch, "Events per request")
      .Between(std::size_t{1}, slots::kMaxBatch)
      .ShowDefault();
  word.AddFlag("--quiet", words->options.quiet, "Do not show a progress bar");
  word.Footer(
      "The feed has the field eventId and optionally requestedTime, configName, tenant and "
      "payload.\n"
      "Exits with 3 if an event got no slot, or if its ID was used with another config, time, "
      "tenant\n"
      "or payload.\n\n"
      "  weir slots import feed.csv --config default --at 2025-06-01T09:00:00Z");
  word.OnRun([words] { return RunImport(*words); });
}

// --- forecast ------------------------------------------------------------------------------------

struct ForecastWords {
  Where where;
  std::string config;
  std::string at;
  std::int64_t count = 1;
  bool json = false;
};

int RunForecast(const ForecastWords& words) {
  const Result<slots::Millis> at = ReadAt(words.at);
  if (!at.ok()) return Fail(at.error());
  auto target = words.where.Open();
  if (!target.ok()) return Fail(target.error());
  auto config = (*target)->GetConfig(words.config);
  if (!config.ok()) return Fail(config.error());
  slots::Forecast forecast(*config, *at, words.count);
  for (;;) {
    auto page = (*target)->ListWindows(words.config, forecast.next(), kPage);
    if (!page.ok()) return Fail(page.error());
    forecast.Add(*page);
    if (forecast.done() || page->size() < kPage) break;
  }
  forecast.Finish();
  const std::string first = slots::FormatInstant(forecast.first_window());
  const std::string last = slots::FormatInstant(forecast.last_window());
  const std::string end = slots::FormatInstant(forecast.finished_by());
  if (words.json) {
    std::cout << JsonObject([&](JsonWriter& json) {
      json.Field("count", words.count)
          .Field("unplaced", forecast.unplaced())
          .Field("windows", forecast.windows())
          .Field("firstWindow", first)
          .Field("lastWindow", last)
          .Field("finishedBy", end);
    }) << '\n';
    return 0;
  }
  std::cout << Counted(words.count, "event") << " requested for " << slots::FormatInstant(*at)
            << " would take " << Counted(forecast.windows(), "window") << " of "
            << slots::FormatDuration(config->window_size) << ":\n  first window  " << first
            << "\n  last window   " << last << "\n  finished by   " << end << "  ("
            << slots::FormatDuration(forecast.finished_by() - *at)
            << " after the requested time)\n";
  if (forecast.unplaced() > 0) std::cout << "  no place for  " << forecast.unplaced() << '\n';
  return 0;
}

void AddForecast(Syntax slots_word) {
  auto words = std::make_shared<ForecastWords>();
  Syntax word = slots_word.AddSubcommand(
      "forecast", "Show which windows events would get, without assigning them.");
  words->where.AddTo(word);
  word.AddOption("--config", words->config, "The config").Required();
  word.AddOption("--count", words->count, "Number of events")
      .Between(std::int64_t{1}, std::int64_t{1'000'000'000'000})
      .Required();
  word.AddOption("--at", words->at, "Requested time of the events, or now").Required();
  word.AddFlag("--json", words->json, "Print JSON");
  word.OnRun([words] { return RunForecast(*words); });
}

// --- plot ----------------------------------------------------------------------------------------

struct PlotWords {
  Where where;
  std::string config;
  std::string from = "1970-01-01T00:00:00Z";
  std::string to = "9999-12-31T23:59:59Z";
  std::string svg;
  std::size_t bars = 40;
  bool json = false;
  bool csv = false;
};

void PrintWindows(const std::vector<slots::WindowLoad>& windows, bool json) {
  std::string text;
  JsonWriter list(text);
  list.BeginArray();
  if (!json) std::cout << "windowStart,count,carried,status\n";
  for (const slots::WindowLoad& window : windows) {
    const std::string start = slots::FormatInstant(window.start);
    const char* status = window.open ? "OPEN" : "CLOSED";
    if (json) {
      list.BeginObject()
          .Field("windowStart", start)
          .Field("count", window.count)
          .Field("carried", window.carried)
          .Field("status", status)
          .EndObject();
    } else {
      std::cout << start << ',' << window.count << ',' << window.carried << ',' << status << '\n';
    }
  }
  list.EndArray();
  if (json) std::cout << text << '\n';
}

int RunPlot(const PlotWords& words) {
  Result<slots::Millis> from = slots::ParseInstant(words.from);
  if (!from.ok()) return Fail({from.error().code, "--from " + from.error().message});
  Result<slots::Millis> to = slots::ParseInstant(words.to);
  if (!to.ok()) return Fail({to.error().code, "--to " + to.error().message});
  auto target = words.where.Open();
  if (!target.ok()) return Fail(target.error());
  auto config = (*target)->GetConfig(words.config);
  if (!config.ok()) return Fail(config.error());
  auto windows = ListAll(**target, words.config, *from, *to);
  if (!windows.ok()) return Fail(windows.error());
  if (!words.svg.empty()) {
    std::ofstream out(words.svg, std::ios::binary);
    out << DrawSvg(MakeBars(*windows, 480), *config);
    if (!out.flush()) return Fail({Code::kInternal, words.svg + ": cannot be written"});
  }
  if (words.json || words.csv) {
    PrintWindows(*windows, words.json);
  } else if (windows->empty()) {
    std::cout << "no events in the windows of " << words.config << '\n';
  } else {
    std::cout << DrawText(MakeBars(*windows, words.bars), config->max_per_window, 40);
  }
  return 0;
}

void AddPlot(Syntax slots_word) {
  auto words = std::make_shared<PlotWords>();
  Syntax word =
      slots_word.AddSubcommand("plot", "Plot the load per window, in the terminal or as SVG.");
  words->where.AddTo(word);
  word.AddOption("--config", words->config, "The config").Required();
  word.AddOption("--from", words->from, "First window").ShowDefault();
  word.AddOption("--to", words->to, "Last window").ShowDefault();
  word.AddOption("--svg", words->svg, "Also write a chart to this SVG file");
  word.AddOption("--bars", words->bars, "Number of lines in the terminal")
      .Between(std::size_t{1}, std::size_t{10'000})
      .ShowDefault();
  word.AddFlag("--json", words->json, "Print JSON instead");
  word.AddFlag("--csv", words->csv, "Print CSV instead");
  word.OnRun([words] { return RunPlot(*words); });
}

// --- verify --------------------------------------------------------------------------------------

int RunVerify(const Where& where) {
  auto target = where.Open();
  if (!target.ok()) return Fail(target.error());
  auto findings = (*target)->Verify();
  if (!findings.ok()) return Fail(findings.error());
  std::cout << Counted(findings->windows, "window") << ", " << Counted(findings->slots, "slot")
            << ", " << Counted(findings->problems, "problem") << '\n';
  for (const std::string& example : findings->examples) std::cout << "  " << example << '\n';
  return findings->problems == 0 ? kExitOk : kProblems;
}

void AddVerify(Syntax slots_word) {
  auto where = std::make_shared<Where>();
  Syntax word = slots_word.AddSubcommand(
      "verify", "Verify every window's counter; exit with 2 if one is wrong.");
  where->AddTo(word);
  word.OnRun([where] { return RunVerify(*where); });
}

void Configure(Syntax word) {
  word.RequireSubcommand();
  AddSlotsConfig(word);
  AddSlotsAssign(word);
  AddImport(word);
  AddForecast(word);
  AddPlot(word);
  AddVerify(word);
  AddSlotsEvents(word);
}

const Command kSlots("slots", "Schedule events in time windows under a hard cap.", Configure);

}  // namespace
}  // namespace weir::app::slots_command
