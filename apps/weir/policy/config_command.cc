// weir config check FILE…: says whether configuration and policy files are valid, and where not.
// weir config check --envoy FILE: says where a configuration of Envoy's limits less than it seems
// to. weir config import --from envoy FILE: turns another program's limits into policies.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "config/config.h"
#include "library/store_routes.h"
#include "notify/providers.h"
#include "policy/envoy_config.h"
#include "policy/envoy_filters.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "policy/set_problems.h"
#include "serve/stores.h"

namespace weir::app::config_command {
namespace {

using policy::yaml::Problem;

// A policy file has `policies` as a list of mappings and perhaps a `domain`; a configuration has
// them as a list of paths.
bool IsPolicyFile(const std::string& path) {
  std::vector<Problem> ignored;
  std::string text;
  if (!policy::yaml::ReadFile(path, policy::yaml::Limits{}.max_bytes, text, ignored)) return false;
  const auto document = policy::yaml::Document::Parse(text, path, ignored);
  if (document.root() == nullptr) return false;
  for (const auto& [name, value] : document.root()->fields) {
    if (name->scalar == "domain") return true;
    if (name->scalar != "policies") continue;
    return !value->items.empty() &&
           value->items.front()->kind == policy::yaml::Node::Kind::kMapping;
  }
  return false;
}

/// Wrapped to fit a terminal; the file, if any, on a line of its own.
std::string Note(std::string_view text, const std::string& file = "") {
  constexpr std::size_t kWidth = 88;
  std::string out = file.empty() ? "note:" : "note: " + file + ":\n     ";
  std::size_t width = 5;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (width + 1 + word.size() > kWidth) {
      out += "\n     ";
      width = 5;
    }
    out.append(" ").append(word);
    width += 1 + word.size();
  }
  return out + '\n';
}

// All files together, since names must be unique among them. Returns what to say if they are right.
std::string CheckPolicies(const std::vector<std::string>& paths, const config::Config& config,
                          bool knows_stores, std::vector<Problem>& problems) {
  std::vector<policy::Definition> all;
  const std::size_t before = problems.size();
  const std::vector<std::string> files = policy::PolicyFiles(paths, problems);
  for (const std::string& path : files) {
    std::vector<policy::Definition> some = policy::LoadPolicyFile(path, problems, config.lenient);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (problems.size() != before) return {};
  const std::size_t count = all.size();
  policy::PolicyIds ids;
  policy::CompileOptions options{config.default_policy, config.local_share};
  options.region = {config.region.term, config.region.lends};
  // A policy file on its own may name any store.
  if (knows_stores) options.stores = library::StoreNames(config);
  const std::vector<Problem> clashes = policy::SetProblems(all, options);
  problems.insert(problems.end(), clashes.begin(), clashes.end());
  if (!clashes.empty()) return {};
  const auto set = policy::PolicySet::Compile(std::move(all), options, ids);
  if (!set.ok()) {
    problems.push_back({"", {}, set.error().message});  // it begins with its place
    return {};
  }
  for (const auto& doubts : {Misfits(config, **set), Remarks(config, **set)}) {
    for (const std::string& doubt : doubts) std::cerr << "warning: " << doubt << '\n';
  }
  for (const std::string& file : policy::FilesWithoutCharge(files)) {
    std::cerr << Note(policy::kEnvoyChargeNote, file);
  }
  return std::to_string(count) + (count == 1 ? " policy in " : " policies in ") +
         std::to_string(files.size()) + (files.size() == 1 ? " file: ok\n" : " files: ok\n");
}

int Check(const std::vector<std::string>& files, bool lenient) {
  std::vector<Problem> problems;
  std::vector<std::string> policy_files;
  const config::Environment environment = config::ReadEnvironment();
  for (const std::string& sentence : environment.unknown) {
    std::cerr << "warning: " << sentence << '\n';
  }
  for (const std::string& file : files) {
    if (std::filesystem::is_directory(file) || IsPolicyFile(file)) {
      std::vector<Problem> unreadable;  // reported when all are read
      if (policy::PolicyFiles({file}, unreadable).empty() && unreadable.empty()) {
        problems.push_back({file, {}, "has no policy files (.yaml or .yml)"});
      } else {
        policy_files.push_back(file);
      }
      continue;
    }
    const std::size_t before = problems.size();
    config::Config config = config::Load(file, environment.overrides, problems);
    for (std::string& wrong : library::WrongUrls(config)) {
      problems.push_back(config::ProblemIn(config, file, std::move(wrong)));
    }
    if (const auto opened = notify::OpenProviders({.routes = config.notify.providers});
        !opened.ok()) {
      problems.push_back(
          config::ProblemIn(config, file, "notify.providers: " + opened.error().message));
    }
    // A proxy listens on an address of its own.
    if (config.listen.all_off() && config.proxy.upstreams.empty()) {
      problems.push_back({file, {}, std::string(config::kAllOff)});
    }
    config.lenient = config.lenient || lenient;
    const bool valid = problems.size() == before;
    std::string policies;
    // Even if there are other errors, so that all are found together; stores may be among these.
    if (!config.policies.empty()) {
      policies = CheckPolicies(config.policies, config, valid, problems);
    }
    if (problems.size() == before) std::cout << file << ": ok\n" << policies;
  }
  config::Config alone;
  alone.lenient = lenient;
  if (!policy_files.empty()) std::cout << CheckPolicies(policy_files, alone, false, problems);
  for (const Problem& problem : problems) std::cerr << problem.ToString() << '\n';
  return problems.empty() ? 0 : 1;
}

/// False with a problem added if it cannot be read or has nothing in it, which would limit nobody.
bool ReadEnvoyFile(const std::string& file, std::string& text, std::vector<Problem>& problems) {
  if (!policy::yaml::ReadFile(file, policy::yaml::Limits{}.max_bytes, text, problems)) return false;
  if (text.empty()) problems.push_back({file, {}, "is empty"});
  return !text.empty();
}

int CheckEnvoy(const std::vector<std::string>& files) {
  std::vector<Problem> problems;
  std::size_t warnings = 0;
  for (const std::string& file : files) {
    std::string text;
    if (!ReadEnvoyFile(file, text, problems)) continue;
    const std::size_t before = problems.size();
    const policy::EnvoyFilters found = policy::CheckEnvoyFilters(text, file, problems);
    if (problems.size() != before) continue;
    for (const Problem& warning : found.warnings) {
      std::cerr << "warning: " << warning.ToString() << '\n';
    }
    warnings += found.warnings.size();
    std::cout << file << ": " << found.rls << " ratelimit filter(s), " << found.rlqs
              << " rate_limit_quota filter(s), " << found.warnings.size() << " warning(s)\n";
  }
  for (const Problem& problem : problems) std::cerr << problem.ToString() << '\n';
  return problems.empty() && warnings == 0 ? 0 : 1;
}

int Import(const std::string& file, bool lenient) {
  std::vector<Problem> problems;
  std::vector<policy::Definition> definitions;
  std::string text;
  if (ReadEnvoyFile(file, text, problems)) {
    definitions = policy::ParseEnvoyConfig(text, file, problems, lenient);
  }
  for (const Problem& problem : problems) std::cerr << problem.ToString() << '\n';
  if (!problems.empty()) return 2;
  std::cout << policy::FormatChains(definitions);
  if (!definitions.empty() && definitions.front().charge != policy::kEnvoyCharge) return 0;
  std::cerr << Note(policy::kEnvoyChargeNote);
  return 0;
}

void ConfigureImport(Syntax word) {
  Syntax command =
      word.AddSubcommand("import", "Convert the limits of another program to policies.");
  static std::string from = "envoy";
  static std::string file;
  command.AddOption("--from", from, "The format of the file").OneOf({"envoy"}).ShowDefault();
  command.AddOption("FILE", file, "A configuration of envoyproxy/ratelimit").Required();
  static bool lenient = false;
  command.AddFlag("--lenient", lenient, "Skip unknown fields");
  command.OnRun([] { return Import(file, lenient); });
  command.Footer(
      "Policies go to standard output. `policies:` also accepts an Envoy ratelimit file as it is;\n"
      "import it if you want to edit it as policies.\n\n"
      "  weir config import ratelimit.yaml > policies.yaml");
}

void Configure(Syntax word) {
  word.RequireSubcommand();
  Syntax check = word.AddSubcommand("check", "Check files; print errors as file:line:column.");
  static std::vector<std::string> files;
  Option given = check.AddOption("FILE", files, "Configuration and policy files");
  static std::vector<std::string> envoy_files;
  Option of_envoy = check.AddOption(
      "--envoy", envoy_files, "Envoy configurations: warn about mistakes in rate limit filters");
  given.Excludes(of_envoy);
  static bool lenient = false;
  check.AddFlag("--lenient", lenient, "Skip unknown fields of envoyproxy/ratelimit files");
  check.OnRun([] {
    if (files.empty() && envoy_files.empty()) Syntax::Missing("FILE");
    return envoy_files.empty() ? Check(files, lenient) : CheckEnvoy(envoy_files);
  });
  ConfigureImport(word);
  check.Footer(
      "A configuration is read as `weir serve` reads it: with the policy files it names and the\n"
      "WEIR_… environment variables. Exits with 0 if valid and 1 if not. Nothing is started or\n"
      "changed.\n\n"
      "  weir config check weir.yaml\n  weir config check policies.yaml\n"
      "  weir config check --envoy envoy.yaml");
}

const Command kConfig("config", "Check configuration and policy files, or import them.", Configure);

}  // namespace
}  // namespace weir::app::config_command
