#include "policy/chain_tree.h"

#include <algorithm>

namespace weir::policy {

std::uint32_t& ChainTree::Way(Branch& branch, const EntryMatch& entry) {
  switch (entry.kind) {
    case MatchKind::kExact:
      return branch.exact[entry.text];
    case MatchKind::kPrefix: {
      const auto known = std::find_if(branch.prefixes.begin(), branch.prefixes.end(),
                                      [&](const auto& one) { return one.first == entry.text; });
      if (known != branch.prefixes.end()) return known->second;
      return branch.prefixes.emplace_back(entry.text, 0).second;
    }
    case MatchKind::kAny:
      break;
  }
  return branch.any;
}

std::optional<std::uint32_t> ChainTree::Add(std::span<const EntryMatch> chain,
                                            std::uint32_t policy) {
  std::uint32_t at = 0;
  for (const EntryMatch& entry : chain) {
    std::uint32_t& next = Way(nodes_[at].by_name[entry.name], entry);
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      at = next;
      nodes_.emplace_back();
    } else {
      at = next;
    }
  }
  if (nodes_[at].policy) return nodes_[at].policy;
  nodes_[at].policy = policy;
  return std::nullopt;
}

std::optional<std::uint32_t> ChainTree::Find(Descriptor descriptor,
                                             std::vector<std::string_view>& values) const {
  std::uint32_t at = 0;
  for (const Entry& entry : descriptor) {
    const auto branch = nodes_[at].by_name.find(entry.key);
    if (branch == nodes_[at].by_name.end()) return std::nullopt;
    const auto exact = branch->second.exact.find(entry.value);
    if (exact != branch->second.exact.end()) {
      at = exact->second;
      continue;
    }
    const auto& prefixes = branch->second.prefixes;
    const auto prefix = std::find_if(prefixes.begin(), prefixes.end(), [&](const auto& one) {
      return entry.value.starts_with(one.first);
    });
    at = prefix != prefixes.end() ? prefix->second : branch->second.any;
    if (at == 0) return std::nullopt;
    values.push_back(entry.value);
  }
  return nodes_[at].policy;
}

}  // namespace weir::policy
