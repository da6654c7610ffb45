#pragma once

#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weir::policy {

struct Policy;

/// Policies by name, for calls about policies rather than requests. Built with the set, since a
/// reactor must not pay for the number of policies when such a call comes.
///
/// Immutable, so thread-safe. Holds views of the policies, which must outlive it.
class Directory {
 public:
  using Names = std::set<std::string_view>;
  /// Enforced policies with a quota, by the names of the entries that they look at. Those that
  /// match any value come first.
  using ByNames = std::map<Names, std::vector<const Policy*>>;

  explicit Directory(const std::vector<Policy>& policies);

  /// The policy whose bucket names begin with `start`, up to their first `|`; null if none does.
  const Policy* ByBucket(std::string_view start) const;
  /// The domains that have policies with a match, and the entry names that those use.
  const std::map<std::string_view, Names>& domains() const noexcept { return domains_; }
  /// Those of a domain; null if it has none.
  const ByNames* LimitsOf(std::string_view domain) const;

 private:
  std::unordered_map<std::string_view, const Policy*> by_start_;
  std::map<std::string_view, Names> domains_;
  std::map<std::string_view, ByNames> limits_;
};

}  // namespace weir::policy
