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
  return ParsePolicies(text, path, problems, lenient);
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
