#include "policy/cluster_tags.h"

#include <algorithm>
#include <map>

namespace weir::policy {
namespace {

/// Per domain; beyond this the answer would cost more than it is worth.
constexpr std::size_t kMaxPairs = 4'000'000;

/// How the policy's keys use the entry: not at all, with a prefix's text, or the request's value.
std::string TagOf(const Definition& policy, std::string_view name) {
  const EntryMatch* entry = EntryOf(policy, name);
  if (entry == nullptr) return "none";
  // In a chain, each value under a prefix has its own key.
  const bool one_key = entry->shared || (entry->kind == MatchKind::kPrefix && !policy.ordered);
  if (one_key) return "prefix " + entry->text;
  return "value";
}

/// One replaces the other: it says so, or it is more specific about the same entries.
bool Replaces(const Definition& one, const Definition& other) {
  const auto& names = one.replaces;
  if (std::find(names.begin(), names.end(), other.name) != names.end()) return true;
  if (one.ordered || other.ordered || one.match.size() != other.match.size()) return false;
  bool more = false;
  for (const EntryMatch& entry : one.match) {
    const EntryMatch* rival = EntryOf(other, entry.name);
    if (rival == nullptr || entry.kind < rival->kind) return false;
    const bool longer = entry.kind == MatchKind::kPrefix && rival->kind == MatchKind::kPrefix &&
                        entry.text.size() != rival->text.size();
    if (longer && entry.text.size() < rival->text.size()) return false;
    more = more || longer || entry.kind > rival->kind;
  }
  return more;
}

using ByTag = std::map<std::string, std::vector<const Definition*>>;

std::optional<std::string> ConflictIn(const ByTag& tags, std::string_view entry) {
  std::size_t pairs = 0;
  for (auto one = tags.begin(); one != tags.end(); ++one) {
    for (auto other = std::next(one); other != tags.end(); ++other) {
      for (const Definition* a : one->second) {
        for (const Definition* b : other->second) {
          if (++pairs > kMaxPairs) return std::nullopt;
          if (!CanMeet(*a, *b)) continue;
          return "policies '" + a->name + "' and '" + b->name + "' of domain '" + a->domain +
                 "' can apply to one request, but with ?tag=" + std::string(entry) +
                 " their keys are in different slots of the cluster: such requests are charged "
                 "slot "
                 "by slot, which takes longer. Make both match every value of '" +
                 std::string(entry) + "', or remove ?tag";
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

const EntryMatch* EntryOf(const Definition& policy, std::string_view name) {
  const auto found = std::find_if(policy.match.begin(), policy.match.end(),
                                  [name](const EntryMatch& entry) { return entry.name == name; });
  return found == policy.match.end() ? nullptr : &*found;
}

bool ValuesMeet(const EntryMatch& a, const EntryMatch& b) {
  if (a.kind == MatchKind::kAny || b.kind == MatchKind::kAny) return true;
  if (a.kind == MatchKind::kExact && b.kind == MatchKind::kExact) return a.text == b.text;
  if (a.kind == MatchKind::kExact) return a.text.starts_with(b.text);
  if (b.kind == MatchKind::kExact) return b.text.starts_with(a.text);
  return a.text.starts_with(b.text) || b.text.starts_with(a.text);
}

bool CanMeet(const Definition& a, const Definition& b) {
  if (a.ordered && b.ordered) return false;  // of all chains only one applies
  for (const EntryMatch& entry : a.match) {
    const EntryMatch* other = EntryOf(b, entry.name);
    if (other != nullptr && !ValuesMeet(entry, *other)) return false;
    // A chain matches the whole descriptor.
    if (other == nullptr && b.ordered) return false;
  }
  const auto in_a = [&a](const EntryMatch& entry) { return EntryOf(a, entry.name) != nullptr; };
  if (a.ordered && !std::all_of(b.match.begin(), b.match.end(), in_a)) return false;
  return !Replaces(a, b) && !Replaces(b, a);
}

bool KeyHasValue(const Definition& policy, std::string_view entry) {
  return TagOf(policy, entry) == "value";
}

std::vector<std::string> TagConflicts(const PolicySet& set, std::string_view entry) {
  std::map<std::string, ByTag> domains;
  for (const Policy& policy : set.policies()) {
    const Definition& definition = policy.definition;
    // Bare keys and shadow policies are charged separately.
    if (!definition.quota || !definition.has_match || definition.shadow) continue;
    domains[definition.domain][TagOf(definition, entry)].push_back(&definition);
  }
  std::vector<std::string> conflicts;
  for (const auto& [name, tags] : domains) {
    if (auto conflict = ConflictIn(tags, entry)) conflicts.push_back(std::move(*conflict));
  }
  return conflicts;
}

}  // namespace weir::policy
