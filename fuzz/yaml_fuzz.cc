// Untrusted YAML, such as policy and configuration files: it is refused with a location, or is a
// tree within the limits.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>
#include <vector>

#include "policy/yaml.h"

namespace {

using weir::policy::yaml::Node;

constexpr weir::policy::yaml::Limits kLimits{
    .max_bytes = 4096, .max_nodes = 1'000, .max_depth = 16};

void Require(bool condition) {
  if (!condition) std::abort();
}

/// The weight of a node, which must match the recorded one.
std::size_t Check(const Node& node, std::size_t depth) {
  Require(depth <= kLimits.max_depth);
  std::size_t weight = 1;
  for (const Node* item : node.items) weight += Check(*item, depth + 1);
  std::set<std::string_view> names;
  for (const auto& [name, value] : node.fields) {
    Require(name->kind == Node::Kind::kScalar && names.insert(name->scalar).second);
    weight += name->weight + Check(*value, depth + 1);
  }
  Require(weight == node.weight && weight <= kLimits.max_nodes);
  return weight;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<weir::policy::yaml::Problem> problems;
  const auto document = weir::policy::yaml::Document::Parse(text, "fuzz", problems, kLimits);
  for (const auto& problem : problems) Require(!problem.message.empty());
  Require(problems.empty() || document.root() == nullptr);
  if (document.root() != nullptr) Check(*document.root(), 0);
  return 0;
}
