// ./dev simulate: runs the real code in a simulated world, seed after seed. See
// docs/design/leases.md.

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "figures.h"
#include "scenario.h"
#include "world.h"

// Read by jemalloc, if that is linked: there is only one thread.
extern "C" {
extern const char* malloc_conf;  // NOLINT(readability-identifier-naming)
const char* malloc_conf = "narenas:1,dirty_decay_ms:1000,lg_tcache_max:13";
}

namespace {

using namespace weir::simulation;

struct Options {
  std::uint64_t first = 1;
  std::uint64_t seeds = 10'000;
  std::size_t nodes = 0;
  bool mutants = false;
  bool figures = false;
  bool fairness = false;
  Mutant sound = Mutant::kNone;
  std::string_view mutant = {};  // empty: all
  bool verbose = false;
};

struct Totals {
  std::uint64_t allowed = 0;
  std::uint64_t refused = 0;
  std::uint64_t local = 0;
  std::uint64_t degraded = 0;
  std::uint64_t calls = 0;
  std::uint64_t lent = 0;
};

int Usage() {
  std::fputs(
      "usage: simulation [--seeds N] [--seed S] [--nodes N] [--mutants] [--figures] [--fairness]\n"
      "                  [--shares] [--permits] [--regions] [--verbose]\n"
      "  --seeds N   how many seeds to run (10000), from --seed on (1)\n"
      "  --nodes N   nodes of each run (drawn: 2 to 8)\n"
      "  --mutants   break each rule on purpose, and fail unless each is found within N seeds\n"
      "  --mutant M  the same for one of them: no-headroom, full-refund, ...\n"
      "  --figures   instead: what leasing costs and saves without faults, at steady demand\n"
      "  --fairness  instead: how evenly nodes share a limit; fails if a Jain index is below 0.95\n"
      "  --shares    only worlds in which nodes reserve shares of a rate\n"
      "  --permits   only worlds with a concurrency quota\n"
      "  --regions   only worlds in which regions lend to their nodes\n"
      "  --verbose   a line for each run\n",
      stderr);
  return 2;
}

bool Number(const char* text, std::uint64_t& value) {
  const char* end = text + std::strlen(text);
  return text != end && std::from_chars(text, end, value).ptr == end;
}

std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::uint64_t value = 0;
    if (word == "--mutants") {
      options.mutants = true;
    } else if (word == "--figures") {
      options.figures = true;
    } else if (word == "--shares") {
      options.sound = Mutant::kOnlyShares;
    } else if (word == "--permits") {
      options.sound = Mutant::kOnlyPermits;
    } else if (word == "--regions") {
      options.sound = Mutant::kOnlyRegions;
    } else if (word == "--fairness") {
      options.fairness = true;
    } else if (word == "--mutant" && i + 1 < argc) {
      options.mutants = true;
      options.mutant = argv[++i];
    } else if (word == "--verbose") {
      options.verbose = true;
    } else if (i + 1 == argc || !Number(argv[++i], value)) {
      return std::nullopt;
    } else if (word == "--seeds") {
      options.seeds = value;
    } else if (word == "--seed") {
      options.first = value;
    } else if (word == "--nodes") {
      options.nodes = value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

Outcome RunSeed(std::uint64_t seed, Mutant mutant, std::size_t nodes) {
  World world(Draw(seed, mutant, nodes));
  return world.Run();
}

void Report(const Scenario& scenario, const Outcome& outcome) {
  std::printf(
      "%s\n  digest %016llx, allowed %llu, refused %llu, local %llu, degraded %llu, calls %llu, "
      "lost %llu\n",
      scenario.ToString().c_str(), static_cast<unsigned long long>(outcome.digest),
      static_cast<unsigned long long>(outcome.allowed),
      static_cast<unsigned long long>(outcome.refused),
      static_cast<unsigned long long>(outcome.local),
      static_cast<unsigned long long>(outcome.degraded),
      static_cast<unsigned long long>(outcome.calls),
      static_cast<unsigned long long>(outcome.lost));
  if (outcome.violation) std::printf("  VIOLATION: %s\n", outcome.violation->c_str());
}

const char* WorldsOf(Mutant sound) {
  if (sound == Mutant::kOnlyShares) return " --shares";
  if (sound == Mutant::kOnlyRegions) return " --regions";
  return sound == Mutant::kOnlyPermits ? " --permits" : "";
}

/// Reports the progress of a long run: on a terminal once a second, elsewhere a line a minute.
class Progress {
 public:
  void Done(std::uint64_t seeds, std::uint64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < std::chrono::seconds(terminal_ ? 1 : 60)) return;
    told_ = now;
    std::fprintf(stderr, "%s%llu of %llu seeds, no violation%s", terminal_ ? "\r" : "",
                 static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(of),
                 terminal_ ? "" : "\n");
  }
  ~Progress() {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

int RunSound(const Options& options) {
  Totals totals;
  Progress progress;
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    progress.Done(seed - options.first, options.seeds);
    const Outcome outcome = RunSeed(seed, options.sound, options.nodes);
    if (options.verbose || outcome.violation) {
      Report(Draw(seed, options.sound, options.nodes), outcome);
    }
    if (outcome.violation) {
      std::printf("reproduce: ./dev simulate --seed %llu --seeds 1 --verbose%s\n",
                  static_cast<unsigned long long>(seed), WorldsOf(options.sound));
      return 1;
    }
    totals.allowed += outcome.allowed;
    totals.refused += outcome.refused;
    totals.local += outcome.local;
    totals.degraded += outcome.degraded;
    totals.calls += outcome.calls;
    totals.lent += outcome.lent;
  }
  std::printf(
      "%llu seeds: no violation; %llu checks allowed, %llu refused, %llu decided without the "
      "store, "
      "%llu while it was down; %llu store calls, %llu permits lent by regions\n",
      static_cast<unsigned long long>(options.seeds),
      static_cast<unsigned long long>(totals.allowed),
      static_cast<unsigned long long>(totals.refused),
      static_cast<unsigned long long>(totals.local),
      static_cast<unsigned long long>(totals.degraded),
      static_cast<unsigned long long>(totals.calls), static_cast<unsigned long long>(totals.lent));
  return 0;
}

int RunMutants(const Options& options) {
  bool all = true;
  for (const Mutant mutant : kMutants) {
    if (!options.mutant.empty() && options.mutant != NameOf(mutant)) continue;
    std::uint64_t seed = options.first;
    while (seed < options.first + options.seeds &&
           !RunSeed(seed, mutant, options.nodes).violation) {
      ++seed;
    }
    const bool found = seed < options.first + options.seeds;
    all &= found;
    std::printf("mutant %-18s %s", std::string(NameOf(mutant)).c_str(),
                found ? "found by seed " : "NOT FOUND");
    if (found) std::printf("%llu", static_cast<unsigned long long>(seed));
    std::printf("\n");
    if (found && options.verbose) {
      const Scenario scenario = Draw(seed, mutant, options.nodes);
      Report(scenario, World(scenario).Run());
    }
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = Parse(argc, argv);
  if (!options) return Usage();
  const Tell print = [](const std::string& name, double value, const char* unit) {
    std::printf("figure %s %.4f %s\n", name.c_str(), value, unit);
  };
  if (options->figures) return MeasureFigures(print) ? 0 : 1;
  if (options->fairness) return MeasureFairness(print) ? 0 : 1;
  return options->mutants ? RunMutants(*options) : RunSound(*options);
}
