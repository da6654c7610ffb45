// Which files the paths of policies name, and the text of one of them.

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

bool IsYaml(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

/// Whether the text says itself that there are no policies, in this form or in Envoy's.
bool HasEmptyList(const std::string& text, const std::string& path) {
  std::vector<yaml::Problem> problems;
  const yaml::Document document = yaml::Document::Parse(text, path, problems);
  return document.root() != nullptr &&
         std::ranges::any_of(document.root()->fields, [](const auto& field) {
           const auto& [name, value] = field;
           return (name->scalar == "policies" || name->scalar == "descriptors") &&
                  value->kind == yaml::Node::Kind::kSequence;
         });
}

}  // namespace

std::vector<Definition> LoadPolicyFile(const std::string& path,
                                       std::vector<yaml::Problem>& problems, bool lenient) {
  std::string text;
  if (!yaml::ReadFile(path, yaml::Limits{}.max_bytes, text, problems)) return {};
  // As a copy leaves it when the disk is full: that must not lift all limits.
  if (text.empty()) {
    problems.push_back({path, {}, "is empty; write \"policies: []\" if there are none"});
    return {};
  }
  const std::size_t before = problems.size();
  std::vector<Definition> policies = ParsePolicies(text, path, problems, lenient);
  // Nor must what is left of a file that was cut short, or of one whose policies are all comments.
  if (policies.empty() && problems.size() == before && !HasEmptyList(text, path)) {
    problems.push_back({path, {}, "has no policies; write \"policies: []\" if there are none"});
  }
  return policies;
}

std::vector<std::string> PolicyFiles(const std::vector<std::string>& paths,
                                     std::vector<yaml::Problem>& problems) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code trouble;
    // A path that looks like a file is treated as one: Docker creates an empty folder where a file
    // is missing, and that must not lift all limits.
    if (IsYaml(path) || !std::filesystem::is_directory(path, trouble)) {
      files.push_back(path);
      continue;
    }
    const auto begin = static_cast<std::ptrdiff_t>(files.size());
    std::filesystem::directory_iterator at(path, trouble);
    for (; !trouble && at != std::filesystem::directory_iterator(); at.increment(trouble)) {
      const std::filesystem::path& file = at->path();
      if (IsYaml(file) && !file.filename().string().starts_with('.'))
        files.push_back(file.string());
    }
    if (trouble) problems.push_back({path, {}, "cannot be read: " + trouble.message()});
    std::sort(files.begin() + begin, files.end());
  }
  return files;
}

}  // namespace weir::policy
