#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/json_writer.h"
#include "bench/bench_load.h"
#include "bench/bench_tls.h"
#include "command.h"
#include "console.h"
#include "remote/remote.h"
#include "trial/chart.h"

// weir bench http | grpc | resp: a load generator.

namespace weir::app::bench_command {
namespace {

struct Words {
  LoadOptions options;
  std::string address;
  std::string svg;
  BenchTlsFiles files;
  bool tls = false;
  bool json = false;
};

/// A door: its name, where it is unless told otherwise, and how it is spoken to.
struct Door {
  const char* name;
  const char* address;
  const char* alpn;
  std::unique_ptr<BenchWire> (*make)(const std::string& address, bool tls);
};

constexpr double kLongest = 86'400;  // seconds

constexpr std::array<std::pair<const char*, double>, 6> kPercentiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}}};

std::string Fixed(double number) {
  std::array<char, 48> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.1f", number);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string Micros(std::uint64_t nanos) { return Fixed(static_cast<double>(nanos) / 1000); }

std::string Json(const LoadResult& result) {
  return JsonObject([&](JsonWriter& json) {
           json.Field("seconds", result.seconds)
               .Field("answered", result.answered())
               .Field("allowed", result.allowed)
               .Field("limited", result.limited)
               .Field("errors", result.errors)
               .Field("unanswered", result.unanswered)
               .Field("perSecond", static_cast<double>(result.answered()) / result.seconds);
           json.Key("latencyUs").BeginObject();
           for (const auto& [name, share] : kPercentiles) {
             json.RawField(name, Micros(result.latency.Percentile(share)));
           }
           json.EndObject();
         }) +
         "\n";
}

Chart ChartOf(const LoadResult& result) {
  Chart chart;
  chart.title = "Answers per second";
  chart.from = "0 s";
  chart.to = std::to_string(static_cast<int>(result.seconds)) + " s";
  chart.series = {{"answers per second", "#2e6fb0", result.per_second}};
  return chart;
}

std::string Text(const LoadResult& result) {
  const double rate = static_cast<double>(result.answered()) / result.seconds;
  std::string out = Grouped(result.answered()) + " answers in " + Fixed(result.seconds) +
                    " s: " + Grouped(static_cast<std::uint64_t>(rate)) + "/s (" +
                    Grouped(result.allowed) + " allowed, " + Grouped(result.limited) +
                    " limited, " + Grouped(result.errors) + " errors, " +
                    Grouped(result.unanswered) + " still under way)\n\n";
  Table table({"latency", ">µs"});
  for (const auto& [name, part] : kPercentiles) {
    table.Add({name, Micros(result.latency.Percentile(part))});
  }
  return out + table.ToString() + "\n" + PlotChart(ChartOf(result), 60, 4);
}

void ShowProgress(double elapsed, std::uint64_t answered) {
  std::cerr << "\r" << static_cast<int>(elapsed) << " s  " << Grouped(answered) << " answers, "
            << Grouped(static_cast<std::uint64_t>(static_cast<double>(answered) / elapsed)) << "/s"
            << std::flush;
}

/// The file that an option names, or the environment as for the other commands.
std::string OrFromEnvironment(const std::string& given, const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  const char* value = given.empty() ? std::getenv(name) : nullptr;
  return value != nullptr ? value : given;
}

/// How connections are made: in the clear, or inside TLS.
Status ChooseWire(Words& words, const Door& door) {
  LoadOptions& options = words.options;
  if (!words.tls) {
    options.make_wire = [&words, &door] { return door.make(words.address, false); };
    return {};
  }
  const Result<BenchTls> tls =
      BenchTls::Make({OrFromEnvironment(words.files.ca, "WEIR_CA"),
                      OrFromEnvironment(words.files.cert, "WEIR_CERT"),
                      OrFromEnvironment(words.files.cert_key, "WEIR_CERT_KEY")});
  if (!tls.ok()) return tls.error();
  options.make_wire = [&words, &door, tls = *tls] {
    return tls.Around(door.make(words.address, true), words.options.host, door.alpn);
  };
  return {};
}

int Run(Words& words, const Door& door) {
  const std::size_t colon = words.address.rfind(':');
  if (colon == std::string::npos) {
    return Fail({Code::kInvalidArgument, "--address must be like 127.0.0.1:8080"});
  }
  words.options.host = words.address.substr(0, colon);
  words.options.port = words.address.substr(colon + 1);
  if (const Status chosen = ChooseWire(words, door); !chosen.ok()) return Fail(chosen.error());
  const bool progress = isatty(STDERR_FILENO) != 0;
  if (progress) words.options.on_progress = ShowProgress;
  const Result<LoadResult> result = RunLoad(words.options);
  if (progress) std::cerr << "\r\x1b[K";
  if (!result.ok()) return Fail(result.error());
  if (!words.svg.empty()) {
    std::ofstream out(words.svg, std::ios::binary);
    out << DrawChart(ChartOf(*result));
    if (!out.flush()) return Fail({Code::kInvalidArgument, words.svg + ": cannot be written"});
  }
  std::cout << (words.json ? Json(*result) : Text(*result));
  return result->errors > 0 ? kExitNo : kExitOk;
}

void AddTls(CLI::App& word, Words& words) {
  CLI::Option* tls = word.add_flag("--tls", words.tls, "Speak TLS");
  word.add_option("--ca", words.files.ca, "PEM file of the authority to trust (WEIR_CA)")
      ->needs(tls);
  word.add_option("--cert", words.files.cert,
                  "PEM file to show the service, mutual TLS (WEIR_CERT)")
      ->needs(tls);
  word.add_option("--cert-key", words.files.cert_key,
                  "PEM file with its private key (WEIR_CERT_KEY)")
      ->needs(tls);
}

void AddDoor(CLI::App& parent, const Door& door, int& exit_code) {
  auto words = std::make_shared<Words>();
  words->address = door.address;
  CLI::App* word =
      parent.add_subcommand(door.name, std::string("Generate load over ") + door.name + ".");
  LoadOptions& options = words->options;
  word->add_option("--address", words->address, "Of the door")->capture_default_str();
  word->add_option("-c,--connections", options.connections)
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000}))
      ->capture_default_str();
  word->add_option("-p,--pipeline", options.pipeline, "Requests in flight per connection")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  word->add_option("-r,--rate", options.rate, "Per second in all (default: as fast as answered)")
      ->check(CLI::Range(0.0, 1e8));
  CLI::Option* seconds = word->add_option("-d,--seconds", options.seconds, "For so long")
                             ->check(CLI::Range(0.1, kLongest))
                             ->capture_default_str();
  word->add_option("-n,--requests", options.requests,
                   "Until so many are answered; with --seconds, no longer than that")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000}));
  word->add_option("--keys", options.keys, "Number of different keys")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000'000}))
      ->capture_default_str();
  word->add_option("-t,--threads", options.threads)
      ->check(CLI::Range(std::size_t{1}, std::size_t{256}))
      ->capture_default_str();
  AddTls(*word, *words);
  word->add_option("--svg", words->svg, "Also write a picture to this file");
  word->add_flag("--json", words->json, "Print JSON, for scripts");
  word->callback([words, seconds, &door, &exit_code] {
    if (words->options.requests > 0 && seconds->empty()) words->options.seconds = kLongest;
    exit_code = Run(*words, door);
  });
}

constexpr std::array<Door, 3> kDoors = {
    {{"http", "127.0.0.1:8080", "http/1.1",
      [](const std::string& to, bool) { return MakeHttpWire(to); }},
     {"grpc", "127.0.0.1:8081", "h2",
      [](const std::string& to, bool tls) { return MakeGrpcWire(to, tls ? "https" : "http"); }},
     {"resp", "127.0.0.1:6380", "", [](const std::string&, bool) { return MakeRespWire(); }}}};

void Configure(CLI::App& word, int& exit_code) {
  word.require_subcommand(1);
  word.footer(
      "With --rate, a latency counts from when a question was due, not from when it was sent.");
  for (const Door& door : kDoors) AddDoor(word, door, exit_code);
}

const Command kBench("bench", "Put load on a service and measure latencies.", Configure);

}  // namespace
}  // namespace weir::app::bench_command
