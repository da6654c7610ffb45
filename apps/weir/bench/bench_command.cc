#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/json_writer.h"
#include "base/number.h"
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

/// A protocol: its name, default address and how to connect.
struct Door {
  const char* name;
  const char* title;
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
  chart.title = "Responses per second";
  chart.from = "0 s";
  chart.to = std::to_string(static_cast<int>(result.seconds)) + " s";
  chart.series = {{"responses per second", "#2e6fb0", result.per_second}};
  return chart;
}

std::string Text(const LoadResult& result) {
  const double rate = static_cast<double>(result.answered()) / result.seconds;
  std::string out = Grouped(result.answered()) + " responses in " + Fixed(result.seconds) +
                    " s: " + Grouped(static_cast<std::uint64_t>(rate)) + "/s (" +
                    Grouped(result.allowed) + " allowed, " + Grouped(result.limited) +
                    " limited, " + Grouped(result.errors) + " errors, " +
                    Grouped(result.unanswered) + " still in flight)\n\n";
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

/// The file that an option names, or the one from the environment, as for the other commands.
std::string OrFromEnvironment(const std::string& given, const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  const char* value = given.empty() ? std::getenv(name) : nullptr;
  return value != nullptr ? value : given;
}

/// How connections are made: in plaintext, or inside TLS.
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
  if (ParseNumber<std::uint16_t>(words.address)) words.address.insert(0, "127.0.0.1:");
  const std::size_t colon = words.address.rfind(':');
  if (colon == std::string::npos) {
    return Fail(
        {Code::kInvalidArgument,
         "--address must be like 127.0.0.1:8080, or a port, and is " + Shown(words.address)});
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

void AddTls(Syntax word, Words& words) {
  Option tls = word.AddFlag("--tls", words.tls, "Use TLS");
  word.AddOption("--ca", words.files.ca, "PEM file with the CA certificates to trust (WEIR_CA)")
      .Needs(tls);
  word.AddOption("--cert", words.files.cert,
                 "PEM file with the client certificate, for mutual TLS (WEIR_CERT)")
      .Needs(tls);
  word.AddOption("--cert-key", words.files.cert_key,
                 "PEM file with its private key (WEIR_CERT_KEY)")
      .Needs(tls);
}

void AddDoor(Syntax parent, const Door& door) {
  auto words = std::make_shared<Words>();
  words->address = door.address;
  Syntax word =
      parent.AddSubcommand(door.name, std::string("Generate load over ") + door.title + ".");
  LoadOptions& options = words->options;
  word.AddOption("--address", words->address, "Address of the service, or its port on 127.0.0.1")
      .ShowDefault();
  word.AddOption("-c,--connections", options.connections, "Number of connections")
      .Between(std::size_t{1}, std::size_t{10'000})
      .ShowDefault();
  word.AddOption("-p,--pipeline", options.pipeline, "Requests in flight per connection")
      .Between(std::size_t{1}, std::size_t{1000})
      .ShowDefault();
  word.AddOption("-r,--rate", options.rate, "Requests per second in total (default: no limit)")
      .Between(0.0, 1e8);
  Option seconds = word.AddOption("-d,--seconds", options.seconds, "How long to run, in seconds")
                       .Between(0.1, kLongest)
                       .ShowDefault();
  word.AddOption("-n,--requests", options.requests,
                 "Stop after this many responses (or --seconds, if given)")
      .Between(std::uint64_t{1}, std::uint64_t{1'000'000'000'000});
  word.AddOption("--keys", options.keys, "Number of different keys")
      .Between(std::size_t{1}, std::size_t{1'000'000'000})
      .ShowDefault();
  word.AddOption("-t,--threads", options.threads, "Number of threads")
      .Between(std::size_t{1}, std::size_t{256})
      .ShowDefault();
  AddTls(word, *words);
  word.AddOption("--svg", words->svg, "Also write a chart to this SVG file");
  word.AddFlag("--json", words->json, "Print JSON");
  word.OnRun([words, seconds, &door] {
    if (words->options.requests > 0 && !seconds.given()) words->options.seconds = kLongest;
    return Run(*words, door);
  });
}

constexpr std::array<Door, 3> kDoors = {
    {{"http", "HTTP", "127.0.0.1:8080", "http/1.1",
      [](const std::string& to, bool) { return MakeHttpWire(to); }},
     {"grpc", "gRPC", "127.0.0.1:8081", "h2",
      [](const std::string& to, bool tls) { return MakeGrpcWire(to, tls ? "https" : "http"); }},
     {"resp", "the Redis protocol", "127.0.0.1:6380", "",
      [](const std::string&, bool) { return MakeRespWire(); }}}};

void Configure(Syntax word) {
  word.RequireSubcommand();
  word.Footer(
      "With --rate, latency is measured from when a request was due, not from when it was sent.");
  for (const Door& door : kDoors) AddDoor(word, door);
}

const Command kBench("bench", "Generate load on a service and measure its latency.", Configure);

}  // namespace
}  // namespace weir::app::bench_command
