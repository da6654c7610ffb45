#include "admin/explain_notes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/nearest.h"

namespace weir::admin {
namespace {

using policy::Definition;
using policy::Directory;
using policy::EntryMatch;
using policy::MatchKind;

/// This runs on a reactor: at most so many groups of policies and policies are looked at.
constexpr int kMostLookedAt = 5000;
constexpr std::size_t kMostNamed = 3;  ///< policies in a sentence
constexpr std::size_t kMostSentences = 4;
/// More entries than this are not tried in another order.
constexpr std::size_t kMostReordered = 6;

bool Fits(const EntryMatch& wanted, std::string_view value) {
  switch (wanted.kind) {
    case MatchKind::kAny:
      return true;
    case MatchKind::kPrefix:
      return value.starts_with(wanted.text);
    case MatchKind::kExact:
      return value == wanted.text;
  }
  return false;
}

const policy::Entry* Given(policy::Descriptor descriptor, std::string_view name) {
  const auto found = std::ranges::find(descriptor, name, &policy::Entry::key);
  return found == descriptor.end() ? nullptr : &*found;
}

/// Whether the policy would take all entries with its names that are given.
bool FitsGiven(const Definition& policy, policy::Descriptor descriptor) {
  return std::ranges::all_of(policy.match, [&](const EntryMatch& wanted) {
    return Given(descriptor, wanted.name) == nullptr ||
           std::ranges::any_of(descriptor, [&](const policy::Entry& entry) {
             return entry.key == wanted.name && Fits(wanted, entry.value);
           });
  });
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// "a", "a and b", "a, b and c"
std::string Listed(const std::vector<std::string>& words, std::string_view before_last = " and ") {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? before_last : ", ";
    text += words[i];
  }
  return text;
}

/// Policies that look at the same missing entries.
struct Missing {
  std::vector<std::string> policies;
  std::size_t entries;  ///< how many are missing
  bool more = false;
};

/// Looks at the policies of one domain, and collects what there is to say.
class Search {
 public:
  Search(const policy::PolicySet& set, policy::Descriptor descriptor)
      : set_(set), descriptor_(descriptor) {}

  /// With `named`, the sentences name the domain.
  void LookIn(std::string_view domain, bool named) {
    const Directory::ByNames* limits = set_.directory().LimitsOf(domain);
    if (limits == nullptr) return;
    of_ = named ? " of domain " + Quoted(domain) : "";
    for (const auto& [names, policies] : *limits) {
      if (--left_ < 0) break;
      std::vector<std::string> missing;
      for (const std::string_view name : names) {
        if (Given(descriptor_, name) == nullptr) missing.emplace_back(name);
      }
      if (missing.empty()) {
        LookForOrder(domain, policies);
      } else if (missing.size() < names.size()) {
        LookForMissing(missing, policies);
      }
    }
    SayMissing();
  }

  ExplainNotes Take() {
    if (notes_.sentences.size() > kMostSentences) notes_.sentences.resize(kMostSentences);
    return std::move(notes_);
  }

 private:
  void LookForMissing(const std::vector<std::string>& missing,
                      const std::vector<const policy::Policy*>& policies) {
    for (const policy::Policy* policy : policies) {
      if (--left_ < 0) return;
      const Definition& one = policy->definition;
      if (!FitsGiven(one, descriptor_)) continue;
      Missing& found = MissingOf(one, missing);
      if (found.policies.size() == kMostNamed) {
        found.more = true;
        return;
      }
      found.policies.push_back(Quoted(one.name));
      NoteSearch(one);
    }
  }

  Missing& MissingOf(const Definition& policy, const std::vector<std::string>& missing) {
    std::string looks;
    if (policy.ordered) {
      std::vector<std::string> chain;
      for (const EntryMatch& entry : policy.match) chain.push_back(entry.name);
      looks = " at " + Listed(chain, ", ") + ", in this order";
    } else {
      looks =
          " at " + Listed(missing) + ": give " + (missing.size() == 1 ? "it" : "them") + ", too";
    }
    return missing_.try_emplace({policy.ordered, looks}, Missing{{}, missing.size()}).first->second;
  }

  /// The buckets of a policy for any value of an entry have that value in their names.
  void NoteSearch(const Definition& policy) {
    if (!notes_.search.empty()) return;
    for (const EntryMatch& wanted : policy.match) {
      const policy::Entry* given = Given(descriptor_, wanted.name);
      if (given == nullptr || wanted.kind != MatchKind::kAny || wanted.shared) continue;
      notes_.search = given->value;
      return;
    }
  }

  /// Those that miss the fewest entries are the most likely.
  void SayMissing() {
    std::vector<std::pair<std::size_t, std::string>> sentences;
    for (const auto& [key, found] : missing_) {
      const auto& [ordered, looks] = key;
      const bool many = found.policies.size() > 1 || found.more;
      std::vector<std::string> names = found.policies;
      if (found.more) names.emplace_back("more");
      sentences.emplace_back(found.entries, (many ? "policies " : "policy ") + Listed(names) + of_ +
                                                (ordered ? "" : " also") +
                                                (many ? " look" : " looks") + looks);
    }
    std::ranges::sort(sentences);
    for (auto& [count, sentence] : sentences) notes_.sentences.push_back(std::move(sentence));
    missing_.clear();
  }

  void LookForOrder(std::string_view domain, const std::vector<const policy::Policy*>& policies) {
    if (descriptor_.size() < 2 || descriptor_.size() > kMostReordered) return;
    for (const policy::Policy* policy : policies) {
      if (--left_ < 0) return;
      const Definition& one = policy->definition;
      if (!one.ordered || one.match.size() != descriptor_.size()) continue;
      const auto order = InOrderOf(one);
      if (!order || !AppliesTo(domain, *policy, *order)) continue;
      std::vector<std::string> names;
      for (const policy::Entry& entry : *order) names.emplace_back(entry.key);
      notes_.sentences.push_back("the same entries in the order " + Listed(names, ", ") +
                                 " match policy " + Quoted(one.name) + of_);
      return;
    }
  }

  /// The given entries in the order of a chain; nothing if they are others, or in this order now.
  std::optional<std::vector<policy::Entry>> InOrderOf(const Definition& chain) const {
    std::vector<policy::Entry> left(descriptor_.begin(), descriptor_.end());
    std::vector<policy::Entry> order;
    bool moved = false;
    for (const EntryMatch& wanted : chain.match) {
      const auto found = std::ranges::find_if(left, [&](const policy::Entry& entry) {
        return entry.key == wanted.name && Fits(wanted, entry.value);
      });
      if (found == left.end()) return std::nullopt;
      moved = moved || found != left.begin();
      order.push_back(*found);
      left.erase(found);
    }
    if (!moved) return std::nullopt;
    return order;
  }

  bool AppliesTo(std::string_view domain, const policy::Policy& policy,
                 const std::vector<policy::Entry>& entries) const {
    policy::MatchBuffer buffer;
    set_.Match(domain, entries, buffer);
    return std::ranges::any_of(buffer.applying,
                               [&](const policy::Applying& one) { return one.policy == &policy; });
  }

  const policy::PolicySet& set_;
  policy::Descriptor descriptor_;
  int left_ = kMostLookedAt;
  std::string of_;
  std::map<std::pair<bool, std::string>, Missing> missing_;  // by how the sentence ends
  ExplainNotes notes_;
};

/// GET /v1/auth has these entries, whether a policy looks at them or not.
bool IsOfAuth(policy::Descriptor descriptor, std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"api_key", "host",  "ip",
                                                      "method",  "route", "user"};
  return Given(descriptor, "ip") != nullptr && std::ranges::find(kNames, name) != kNames.end();
}

/// "no policy looks at 'pln'; did you mean 'plan'?"
void NoteUnused(const policy::PolicySet& set, std::string_view domain,
                policy::Descriptor descriptor, ExplainNotes& notes) {
  const auto found = set.directory().domains().find(domain);
  if (found == set.directory().domains().end()) return;
  const std::vector<std::string_view> used(found->second.begin(), found->second.end());
  for (const policy::Entry& entry : descriptor) {
    if (found->second.contains(entry.key) || IsOfAuth(descriptor, entry.key)) continue;
    if (notes.sentences.size() >= 2 * kMostSentences) return;
    std::string sentence = "no policy looks at " + Quoted(entry.key);
    if (const auto nearest = Nearest(entry.key, used)) {
      sentence += "; did you mean " + Quoted(*nearest) + "?";
    }
    notes.sentences.push_back(std::move(sentence));
  }
}

/// An entry that has a bucket for each of its values; "user" if there is such a one.
std::optional<std::string_view> NameOfKeys(const Directory::ByNames& limits) {
  std::optional<std::string_view> name;
  int left = kMostLookedAt;
  for (const auto& [names, policies] : limits) {
    if (--left < 0) break;
    for (const EntryMatch& entry : policies.front()->definition.match) {
      if (entry.kind != MatchKind::kAny || entry.shared) continue;
      if (!name || entry.name == "user") name = entry.name;
    }
  }
  return name;
}

}  // namespace

ExplainNotes NotesOn(const policy::PolicySet& set, std::string_view domain,
                     policy::Descriptor descriptor, bool misspelt) {
  Search search(set, descriptor);
  search.LookIn(domain, /*named=*/false);
  ExplainNotes notes = search.Take();
  if (misspelt) NoteUnused(set, domain, descriptor, notes);
  return notes;
}

ExplainNotes NotesOnAnyDomain(const policy::PolicySet& set, policy::Descriptor descriptor) {
  Search search(set, descriptor);
  for (const auto& [domain, names] : set.directory().domains()) {
    search.LookIn(domain, /*named=*/true);
  }
  return search.Take();
}

ExplainNotes NotesOnKey(const policy::PolicySet& set, std::string_view key) {
  std::optional<std::string_view> name;
  for (const auto& [domain, names] : set.directory().domains()) {
    const Directory::ByNames* limits = set.directory().LimitsOf(domain);
    if (limits == nullptr) continue;
    const auto found = NameOfKeys(*limits);
    if (found && (!name || found == "user")) name = found;
  }
  if (!name) return {};
  return {{"policies may also count this under an entry, such as " + std::string(*name) + "=…"},
          std::string(key)};
}

}  // namespace weir::admin
