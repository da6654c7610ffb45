#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>

#include "base/json_writer.h"
#include "command.h"
#include "policy/policy_file.h"
#include "remote/remote.h"
#include "trial/chart.h"
#include "weir/engine.h"

// weir simulate: one key under a quota, with traffic of a known shape, on a clock of its own.

namespace weir::app::simulate_command {
namespace {

struct Words {
  std::string shape = "steady";
  double rate = 10;
  int seconds = 60;
  std::string quota = "{token_bucket: {capacity: 10, refill_per_second: 5}}";
  std::int64_t cost = 1;
  std::uint64_t seed = 1;
  std::string svg;
  bool json = false;
};

struct Second {
  std::uint64_t asked = 0;
  std::uint64_t allowed = 0;
};

/// Requests per second at a moment.
double RateAt(const Words& words, double second) {
  constexpr double kPeriod = 10;
  const double phase = std::fmod(second, kPeriod);
  if (words.shape == "burst") return phase < 1 ? words.rate * kPeriod : 0;
  if (words.shape == "sawtooth") return 2 * words.rate * phase / kPeriod;
  if (words.shape == "flash") {
    const double part = second / words.seconds;
    return part >= 0.4 && part < 0.5 ? 5 * words.rate : words.rate / 5;
  }
  return words.rate;
}

/// When requests arrive, in order. Deterministic; poisson uses a seeded generator.
std::vector<Nanos> Arrivals(const Words& words) {
  constexpr int kStepsPerSecond = 1000;
  constexpr Nanos kStep = 1'000'000'000 / kStepsPerSecond;
  std::vector<Nanos> arrivals;
  if (words.shape == "poisson") {
    std::mt19937_64 random(words.seed);
    std::exponential_distribution<double> gap(words.rate);
    for (double at = gap(random); at < words.seconds; at += gap(random)) {
      arrivals.push_back(static_cast<Nanos>(at * 1e9));
    }
    return arrivals;
  }
  double due = 0;
  for (int step = 0; step < words.seconds * kStepsPerSecond; ++step) {
    due += RateAt(words, static_cast<double>(step) / kStepsPerSecond) / kStepsPerSecond;
    // Slightly below one counts as one: sums of fractions are not exact.
    for (; due > 1 - 1e-9; due -= 1) arrivals.push_back(step * kStep);
  }
  return arrivals;
}

Result<Quota> ReadQuota(const std::string& text) {
  std::vector<policy::yaml::Problem> problems;
  const auto definitions = policy::ParsePolicies(
      "policies:\n- name: simulated\n  match: {}\n  quota: " + text + "\n", "--quota", problems);
  // Lines and columns would be those of the policy around it.
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, "--quota: " + problems.front().message};
  }
  if (definitions.size() != 1 || !definitions[0].quota) {
    return Error{Code::kInvalidArgument, "--quota: needs exactly one quota"};
  }
  return *definitions[0].quota;
}

std::vector<Second> Simulate(const Words& words, const Quota& quota) {
  constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000;  // windows begin there
  ManualClock clock(kStart);
  Engine engine(quota, {.max_keys = 16, .clock = &clock});
  std::vector<Second> seconds(static_cast<std::size_t>(words.seconds));
  for (const Nanos at : Arrivals(words)) {
    clock.Set(kStart + at);
    Second& second = seconds[static_cast<std::size_t>(at / 1'000'000'000)];
    ++second.asked;
    if (engine.TryAcquire("key", words.cost).allowed()) ++second.allowed;
  }
  return seconds;
}

Chart ChartOf(const Words& words, const Quota& quota, const std::vector<Second>& seconds) {
  Chart chart;
  chart.title = words.shape + " traffic under " + quota.ToString();
  chart.from = "0 s";
  chart.to = std::to_string(words.seconds) + " s";
  chart.series = {{"asked", "#8aa4c8", {}}, {"allowed", "#2e8b57", {}}, {"limited", "#c0392b", {}}};
  for (const Second& second : seconds) {
    chart.series[0].values.push_back(static_cast<double>(second.asked));
    chart.series[1].values.push_back(static_cast<double>(second.allowed));
    chart.series[2].values.push_back(static_cast<double>(second.asked - second.allowed));
  }
  return chart;
}

void PrintJson(const std::vector<Second>& seconds) {
  std::uint64_t asked = 0;
  std::uint64_t allowed = 0;
  std::string list;
  JsonWriter rows(list);
  rows.BeginArray();
  for (const Second& second : seconds) {
    asked += second.asked;
    allowed += second.allowed;
    rows.BeginObject().Field("asked", second.asked).Field("allowed", second.allowed).EndObject();
  }
  rows.EndArray();
  std::cout << JsonObject([&](JsonWriter& json) {
    json.Field("asked", asked).Field("allowed", allowed).RawField("perSecond", list);
  }) << '\n';
}

int Run(const Words& words) {
  constexpr double kMostRequests = 5e7;
  if (words.rate * words.seconds > kMostRequests) {
    std::cerr << "weir: --rate times --seconds must be at most 50,000,000\n";
    return kExitUsage;
  }
  const Result<Quota> quota = ReadQuota(words.quota);
  if (!quota.ok()) {
    std::cerr << "weir: " << quota.error().message << '\n';
    return kExitUsage;
  }
  const std::vector<Second> seconds = Simulate(words, *quota);
  const Chart chart = ChartOf(words, *quota, seconds);
  if (!words.svg.empty()) {
    std::ofstream out(words.svg, std::ios::binary);
    out << DrawChart(chart);
    if (!out.flush()) {
      std::cerr << "weir: " << words.svg << ": cannot be written\n";
      return kExitUsage;
    }
  }
  if (words.json) {
    PrintJson(seconds);
  } else {
    std::cout << chart.title << ", per second\n\n" << PlotChart(chart);
  }
  return kExitOk;
}

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  word.AddOption("--shape", words->shape, "Traffic: steady, burst, sawtooth, poisson or flash")
      .OneOf({"steady", "burst", "sawtooth", "poisson", "flash"})
      .ShowDefault();
  word.AddOption("--rate", words->rate, "Requests per second, on average")
      .Between(0.001, 1e7)
      .ShowDefault();
  word.AddOption("--seconds", words->seconds, "Duration in seconds")
      .Between(1, 86'400)
      .ShowDefault();
  word.AddOption("--quota", words->quota, "The quota, as in a policy file").ShowDefault();
  word.AddOption("--cost", words->cost, "Cost of each request")
      .Between(std::int64_t{1}, kMaxLimit)
      .ShowDefault();
  word.AddOption("--seed", words->seed, "Seed for random arrivals").ShowDefault();
  word.AddOption("--svg", words->svg, "Also write a chart to this SVG file");
  word.AddFlag("--json", words->json, "Print JSON");
  word.OnRun([words] { return Run(*words); });
}

const Command kSimulate("simulate", "Try a quota on simulated traffic.", Configure);

}  // namespace
}  // namespace weir::app::simulate_command
