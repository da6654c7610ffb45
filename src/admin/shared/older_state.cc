#include "admin/shared/older_state.h"

namespace weir::policy::shared {

std::string LacksInWords(const PolicyMap& known, std::int64_t change, const Snapshot& now) {
  constexpr std::size_t kMostNamed = 10;
  std::string names;
  std::size_t lacking = 0;
  for (const auto& [key, policy] : known) {
    if (now.policies.contains(key)) continue;
    if (++lacking <= kMostNamed) names += (names.empty() ? "" : ", ") + key;
  }
  if (lacking > kMostNamed) names += " and " + std::to_string(lacking - kMostNamed) + " more";
  return "change " + std::to_string(now.changes) + " comes after " + std::to_string(change) +
         "; no longer in force: " + (names.empty() ? "none" : names);
}

}  // namespace weir::policy::shared
