#pragma once

// Policies with a `chain`: the descriptor must have exactly these entries, in this order, and only
// the most specific chain applies. At each entry an exact value goes before a prefix (the first
// that was added), and that before "any value"; what was chosen is never taken back. So a chain
// that ends on the way, or leads nowhere, applies no limit although a more general one would. That
// is how Envoy's rate limit service reads its nested descriptors.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_map.h"
#include "policy/definition.h"
#include "policy/request.h"

namespace weir::policy {

/// Immutable once filled, so thread-safe then.
class ChainTree {
 public:
  ChainTree() : nodes_(1) {}

  /// Requires a chain with at least one entry. Nothing, or the policy that has this chain already.
  std::optional<std::uint32_t> Add(std::span<const EntryMatch> chain, std::uint32_t policy);

  /// The policy for the descriptor, if any. Appends the values of entries that do not match a
  /// single value exactly, in order: each of them has a bucket of its own.
  std::optional<std::uint32_t> Find(Descriptor descriptor,
                                    std::vector<std::string_view>& values) const;

 private:
  // Where an entry of one name leads; 0 is nowhere, since nothing leads to the root.
  struct Branch {
    TextMap<std::uint32_t> exact;
    std::vector<std::pair<std::string, std::uint32_t>> prefixes;
    std::uint32_t any = 0;
  };
  struct Node {
    TextMap<Branch> by_name;
    std::optional<std::uint32_t> policy;
  };

  static std::uint32_t& Way(Branch& branch, const EntryMatch& entry);

  std::vector<Node> nodes_;
};

}  // namespace weir::policy
