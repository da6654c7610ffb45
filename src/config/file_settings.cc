#include "config/file_settings.h"

#include <string_view>

#include "base/file.h"
#include "policy/yaml.h"

namespace weir::config {
namespace {

using policy::yaml::Node;

/// The first line of a key file.
std::string KeyOf(const std::string& path) {
  const Result<std::string> line = ReadFirstLine(path);
  return line.ok() ? *line : std::string();
}

/// Appends a text that is different for any two trees.
// NOLINTNEXTLINE(misc-no-recursion): the depth of the tree is bounded
void Append(std::string& text, const Node& node, bool is_path = false) {
  text += static_cast<char>('0' + static_cast<int>(node.kind));
  text += std::to_string(node.scalar.size()) + ":" + node.scalar;
  const std::size_t at = node.scalar.find('@');
  if (is_path) text += KeyOf(node.scalar);
  if (at != std::string::npos) text += KeyOf(node.scalar.substr(at + 1));
  text += std::to_string(node.items.size() + node.fields.size());
  for (const Node* item : node.items) Append(text, *item);
  for (const auto& [name, value] : node.fields) {
    Append(text, *name);
    Append(text, *value, name->scalar == "file");
  }
}

Digest DigestOf(const Node& node) {
  std::string text;
  Append(text, node);
  return Sha256(text);
}

}  // namespace

Result<FileSettings> FileSettings::Read(const std::string& path) {
  FileSettings read;
  if (path.empty()) return read;
  constexpr policy::yaml::Limits kLimits{
      .max_bytes = std::size_t{1} << 20, .max_nodes = 100'000, .max_depth = 16};
  std::vector<policy::yaml::Problem> problems;
  std::string text;
  (void)policy::yaml::ReadFile(path, kLimits.max_bytes, text, problems);
  const auto document = policy::yaml::Document::Parse(text, path, problems, kLimits);
  if (!problems.empty()) return Error{Code::kInvalidArgument, problems.front().ToString()};
  if (document.root() == nullptr) return read;
  for (const auto& [name, value] : document.root()->fields) {
    if (value->kind != Node::Kind::kMapping || name->scalar == "default_policy") {
      read.settings_[name->scalar] = DigestOf(*value);
      continue;
    }
    for (const auto& [inner, one] : value->fields) {
      read.settings_[name->scalar + "." + inner->scalar] = DigestOf(*one);
    }
  }
  return read;
}

std::vector<std::string> FileSettings::ChangedIn(const FileSettings& later) const {
  std::vector<std::string> names;
  for (const auto& [name, digest] : settings_) {
    const auto found = later.settings_.find(name);
    if (found == later.settings_.end() || found->second != digest) names.push_back(name);
  }
  for (const auto& [name, digest] : later.settings_) {
    if (!settings_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace weir::config
