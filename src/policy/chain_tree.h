#pragma once

// Policies with a `chain`: the descriptor must have exactly these entries, in this order, and only
// the most specific chain applies. At each entry an exact value takes precedence over a prefix (the
// first added), and that over "any value"; there is no backtracking. So a chain that ends early, or
// leads nowhere, applies no limit even if a more general one would. This is how Envoy's rate limit
// service reads its nested descriptors.

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

  /// Requires at least one entry. Returns the policy that already has this chain, if any.
  std::optional<std::uint32_t> Add(std::span<const EntryMatch> chain, std::uint32_t policy);

  /// The policy for the descriptor, if any. Appends the values of entries that do not match a
  /// single value exactly, in order: each value has its own bucket.
  std::optional<std::uint32_t> Find(Descriptor descriptor,
                                    std::vector<std::string_view>& values) const;

 private:
  // Where an entry with one name leads; 0 is nowhere, since nothing leads to the root.
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
