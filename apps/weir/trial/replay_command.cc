#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "remote/remote.h"
#include "trial/replay.h"

// weir replay: what policies would have done to the traffic of an access log.

namespace weir::app::replay_command {
namespace {

struct Words {
  ReplayOptions options;
  std::string format = "auto";
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

int Run(Words& words) {
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
    std::cerr << "weir: no line of " << words.options.log << " is of a format that is known here\n";
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

void Configure(CLI::App& word, int& exit_code) {
  auto words = std::make_shared<Words>();
  word.add_option("--log", words->options.log, "An access log; may be gzip-compressed")
      ->required()
      ->check(CLI::ExistingFile);
  word.add_option("--policies", words->options.candidate, "Policy files to try")->required();
  word.add_option("--against", words->options.current, "Policy files to compare them with");
  word.add_option("--format", words->format, "auto, combined, json or envoy")
      ->check(CLI::IsMember({"auto", "combined", "json", "envoy"}))
      ->capture_default_str();
  word.add_option("--domain", words->options.domain,
                  "The domain of the requests (default: that of the first policy)");
  word.add_option("--max-keys", words->options.max_keys, "Keys held at once, per set of policies")
      ->check(CLI::Range(std::size_t{1000}, std::size_t{100'000'000}))
      ->capture_default_str();
  word.add_option("--top", words->top,
                  "How many limited keys, and how many requests that differ, to show")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100'000}))
      ->capture_default_str();
  word.add_option("--svg", words->svg, "Also write a picture to this file");
  word.add_flag("--json", words->json, "Print JSON, for scripts");
  word.add_flag("--quiet", words->quiet, "No progress bar");
  word.footer(
      "Requests have the entries ip, route, method, user and host, as far as the log tells.\n"
      "Exits with 1 if --against shows a difference.");
  word.callback([words, &exit_code] { exit_code = Run(*words); });
}

const Command kReplay("replay", "Try policies on the traffic of an access log.", Configure);

}  // namespace
}  // namespace weir::app::replay_command
