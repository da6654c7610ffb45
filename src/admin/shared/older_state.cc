#include "admin/shared/older_state.h"

#include <string_view>

namespace weir::policy::shared {
namespace {

constexpr std::size_t kMostNamed = 10;

/// "; no longer in force: a, b and 3 more", or nothing without any. Not thread-safe.
class Names {
 public:
  explicit Names(std::string_view title) : title_(title) {}

  void Add(const std::string& key) {
    if (++count_ <= kMostNamed) names_ += (names_.empty() ? "" : ", ") + key;
  }
  std::string ToString() const {
    if (count_ == 0) return {};
    const std::string more =
        count_ > kMostNamed ? " and " + std::to_string(count_ - kMostNamed) + " more" : "";
    return "; " + std::string(title_) + ": " + names_ + more;
  }

 private:
  std::string_view title_;
  std::string names_;
  std::size_t count_ = 0;
};

}  // namespace

std::string DifferenceInWords(const PolicyMap& known, std::int64_t change, const Snapshot& now) {
  Names gone("no longer in force");
  Names changed("changed back");
  Names returned("in force again");
  for (const auto& [key, policy] : known) {
    const auto found = now.policies.find(key);
    if (found == now.policies.end()) {
      gone.Add(key);
    } else if (found->second != policy) {
      changed.Add(key);
    }
  }
  for (const auto& [key, policy] : now.policies) {
    if (!known.contains(key)) returned.Add(key);
  }
  const std::string names = gone.ToString() + changed.ToString() + returned.ToString();
  return "change " + std::to_string(now.changes) + " comes after " + std::to_string(change) +
         (names.empty() ? "; the policies are the same" : names);
}

}  // namespace weir::policy::shared
