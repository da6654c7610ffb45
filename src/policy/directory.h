#pragma once

#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weir::policy {

struct Policy;

/// Policies by their names, for those who ask about policies and not about requests. Made with the
/// set, since a reactor must not pay for the number of policies when somebody asks.
///
/// Immutable, so thread-safe. Views of the policies, which must outlive it.
class Directory {
 public:
  using Names = std::set<std::string_view>;

  explicit Directory(const std::vector<Policy>& policies);

  /// The policy whose buckets' names begin with `start`, up to their first `|`; null if none does.
  const Policy* ByBucket(std::string_view start) const;
  /// The domains that have policies with a match, and the names of entries that those use.
  const std::map<std::string_view, Names>& domains() const noexcept { return domains_; }

 private:
  std::unordered_map<std::string_view, const Policy*> by_start_;
  std::map<std::string_view, Names> domains_;
};

}  // namespace weir::policy
