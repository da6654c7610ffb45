#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>

#include "command.h"
#include "config/config.h"
#include "console.h"
#include "remote/remote.h"
#include "trial/replay.h"

// weir replay: what policies would have done to the traffic of an access log.

namespace weir::app::replay_command {
namespace {

struct Words {
  ReplayOptions options;
  std::string format = "auto";
  std::string asker = "auth";
  std::string config;
  std::string svg;
  std::size_t top = 20;
  bool json = false;
  bool quiet = false;
};

void ShowProgress(double part, std::uint64_t lines) {
  constexpr int kWidth = 40;
  const int filled = static_cast<int>(part * kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "█" : "░";
  std::cerr << "\r" << bar << " " << static_cast<int>(part * 100) << " %  " << Grouped(lines)
            << " lines" << std::flush;
}

/// Reads how requests without a policy are treated, and which policies to try. False: the file is
/// invalid or there are no policies, which was reported.
bool ReadRules(Words& words) {
  std::vector<policy::yaml::Problem> problems;
  const config::Config config =
      words.config.empty() ? config::Config() : config::Load(words.config, {}, problems);
  for (const auto& problem : problems) std::cerr << "weir: " << problem.ToString() << '\n';
  ReplayRules& rules = words.options.rules;
  rules.asker = words.asker == "auth"    ? Asker::kAuth
                : words.asker == "proxy" ? Asker::kProxy
                                         : Asker::kCheck;
  rules.default_policy = config.default_policy;
  // A proxy that has policies has no default other than the one that is configured.
  rules.default_applies =
      rules.asker == Asker::kProxy ? config.default_policy_written : config.default_for_requests();
  rules.deny_unmatched = config.deny_unmatched;
  rules.lenient = config.lenient;
  rules.grouping.v6_prefix = config.ipv6_prefix;
  if (words.options.candidate.empty()) words.options.candidate = config.policies;
  if (problems.empty() && words.options.candidate.empty()) {
    std::cerr << "weir: --policies is required"
              << (words.config.empty() ? "" : ": " + words.config + " names no policies") << '\n';
    return false;
  }
  return problems.empty();
}

int Run(Words& words) {
  if (!ReadRules(words)) return kExitUsage;
  words.options.format = *access_log::ParseFormat(words.format);
  words.options.max_differences = words.top;
  const bool progress = !words.quiet && isatty(STDERR_FILENO) != 0;
  if (progress) words.options.on_progress = ShowProgress;
  Result<ReplayResult> result = Replay(words.options);
  if (progress) std::cerr << "\r\x1b[K";
  if (!result.ok()) {
    std::cerr << "weir: " << result.error().message << '\n';
    return kExitUsage;
  }
  if (result->lines == result->malformed) {
    std::cerr << "weir: no line of " << words.options.log << " has a known format\n";
    for (const std::string& example : result->examples) std::cerr << "  " << example << '\n';
    return kExitUsage;
  }
  if (!words.svg.empty()) {
    std::ofstream out(words.svg, std::ios::binary);
    out << ReplaySvg(*result);
    if (!out.flush()) {
      std::cerr << "weir: " << words.svg << ": cannot be written\n";
      return kExitUsage;
    }
  }
  std::cout << (words.json ? ReplayJson(*result, words.top) : ReplayText(*result, words.top));
  return result->newly_limited + result->newly_allowed > 0 ? kExitNo : kExitOk;
}

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  word.AddOption("log,--log", words->options.log, "Access log; may be gzip-compressed")
      .Required()
      .ExistingFile();
  word.AddOption("--policies", words->options.candidate,
                 "Policy files to try (default: those of --config)");
  word.AddOption("--against", words->options.current, "Policy files to compare them with");
  word.AddOption("--as", words->asker,
                 "Decide as: auth (GET /v1/auth), proxy (weir proxy) or check "
                 "(POST /v1/check)")
      .OneOf({"auth", "proxy", "check"})
      .ShowDefault();
  word.AddOption(
          "--config", words->config,
          "Configuration with the default_policy, unmatched and ipv6_prefix that apply, and the\n"
          "policies if --policies is not given")
      .ExistingFile();
  word.AddOption("--format", words->format, "Format of the log: auto, combined, json or envoy")
      .OneOf({"auto", "combined", "json", "envoy"})
      .ShowDefault();
  word.AddOption("--domain", words->options.domain,
                 "Domain of the requests (default: that of requests that name none)");
  word.AddOption("--max-keys", words->options.max_keys,
                 "Maximum number of keys in memory, per set of policies")
      .Between(std::size_t{1000}, std::size_t{100'000'000})
      .ShowDefault();
  word.AddOption("--top", words->top, "Number of limited keys, and of differing requests, to show")
      .Between(std::size_t{1}, std::size_t{100'000})
      .ShowDefault();
  word.AddOption("--svg", words->svg, "Also write a chart to this SVG file");
  word.AddFlag("--json", words->json, "Print JSON");
  word.AddFlag("--quiet", words->quiet, "Do not show a progress bar");
  word.Footer(
      "Requests have the entries ip, user, route and method (--as check: and host), if the log "
      "has\n"
      "them. With --as auth, the default policy applies to requests that no other policy matches.\n"
      "Exits with 1 if --against shows a difference.\n\n"
      "  weir replay access.log --policies candidate.yaml --against current.yaml");
  word.OnRun([words] { return Run(*words); });
}

const Command kReplay("replay", "Try policies on the traffic of an access log.", Configure);

}  // namespace
}  // namespace weir::app::replay_command
