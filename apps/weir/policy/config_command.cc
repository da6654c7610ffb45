// weir config check FILE…: says whether configuration and policy files are right, and where not.
// weir config import --from envoy FILE: turns another program's limits into policies.

#include <iostream>
#include <string>
#include <vector>

#include "command.h"
#include "config/config.h"
#include "policy/envoy_config.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "serve/stores.h"

namespace weir::app {
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

// All files together, since names must be unique among them.
void CheckPolicies(const std::vector<std::string>& paths, const config::Config& config,
                   std::vector<Problem>& problems) {
  std::vector<policy::Definition> all;
  const std::size_t before = problems.size();
  for (const std::string& path : paths) {
    std::vector<policy::Definition> some = policy::LoadPolicyFile(path, problems);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (problems.size() != before) return;
  const std::size_t count = all.size();
  policy::PolicyIds ids;
  const auto set =
      policy::PolicySet::Compile(std::move(all), {config.default_policy, config.local_share}, ids);
  if (!set.ok()) {
    problems.push_back({"policies", {}, set.error().message});
    return;
  }
  for (const std::string& misfit : Misfits(config, **set)) {
    std::cerr << "warning: " << misfit << '\n';
  }
  std::cout << paths.size() << " policy file(s), " << count << " policies: ok\n";
}

int Check(const std::vector<std::string>& files) {
  std::vector<Problem> problems;
  std::vector<std::string> policy_files;
  const config::Environment environment = config::ReadEnvironment();
  for (const std::string& sentence : environment.unknown) std::cerr << sentence << '\n';
  for (const std::string& file : files) {
    if (IsPolicyFile(file)) {
      policy_files.push_back(file);
      continue;
    }
    const std::size_t before = problems.size();
    const config::Config config = config::Load(file, environment.overrides, problems);
    if (problems.size() != before) continue;
    std::cout << file << ": ok\n";
    if (!config.policies.empty()) CheckPolicies(config.policies, config, problems);
  }
  if (!policy_files.empty()) CheckPolicies(policy_files, {}, problems);
  for (const Problem& problem : problems) std::cerr << problem.ToString() << '\n';
  return problems.empty() ? 0 : 1;
}

int Import(const std::string& file) {
  std::vector<Problem> problems;
  std::vector<policy::Definition> definitions;
  std::string text;
  if (policy::yaml::ReadFile(file, policy::yaml::Limits{}.max_bytes, text, problems)) {
    definitions = policy::ParseEnvoyConfig(text, file, problems);
  }
  for (const Problem& problem : problems) std::cerr << problem.ToString() << '\n';
  if (!problems.empty()) return 2;
  std::cout << policy::FormatChains(definitions);
  return 0;
}

void ConfigureImport(CLI::App& word, int& exit_code) {
  CLI::App* command =
      word.add_subcommand("import", "Print the limits of another program as policies.");
  static std::string from;
  static std::string file;
  command->add_option("--from", from, "Whose format it is.")
      ->required()
      ->check(CLI::IsMember({"envoy"}));
  command->add_option("FILE", file, "A configuration of envoyproxy/ratelimit.")->required();
  command->callback([&exit_code] { exit_code = Import(file); });
  command->footer(
      "The policies go to standard output. A file of Envoy's may also be named under `policies:`\n"
      "as it is; importing is for those who want to edit it from then on.\n\n"
      "  weir config import --from envoy ratelimit.yaml > policies.yaml");
}

void Configure(CLI::App& word, int& exit_code) {
  word.require_subcommand(1);
  CLI::App* check =
      word.add_subcommand("check", "Say whether files are right, or file:line:column of errors.");
  static std::vector<std::string> files;
  check->add_option("FILE", files, "Configuration or policy files, in any mixture.")->required();
  check->callback([&exit_code] { exit_code = Check(files); });
  ConfigureImport(word, exit_code);
  check->footer(
      "A configuration is read as `weir serve` does: with the policy files that it names and the\n"
      "WEIR_… of the environment. Exit code 0: all is well, 1: something is wrong. Nothing is\n"
      "started and nothing is changed.\n\n"
      "  weir config check weir.yaml\n  weir config check policies.yaml");
}

const Command kConfig("config", "Check configuration and policy files, or import them.", Configure);

}  // namespace
}  // namespace weir::app
