#include "policy/spread.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/cluster_tags.h"
#include "policy/keys.h"

namespace weir::policy {
namespace {

/// Per domain: beyond this, policies of one shape are treated as one.
constexpr std::size_t kMaxPolicies = 500;
/// And beyond this many shapes, all live by their domain.
constexpr std::size_t kMaxShapes = 1000;

/// Policies that are treated as one: a single one, or all of a shape.
struct Member {
  const Definition* definition = nullptr;  // the first of them
  std::vector<const Policy*> policies;
  bool shape = false;  // values are ignored
};

std::string HeadOf(const Policy& policy) {
  const std::string& first = policy.key_parts.front();
  return first.substr(0, first.find('|'));
}

/// The same for all policies that use the same entries in the same way.
std::string ShapeOf(const Definition& definition) {
  std::vector<std::string> parts;
  for (const EntryMatch& entry : definition.match) {
    std::string part;
    AppendEscaped(part, entry.name);
    part += KeyHasValue(definition, entry.name) ? "|value" : "|shared";
    parts.push_back(std::move(part));
  }
  if (!definition.ordered) std::sort(parts.begin(), parts.end());
  std::string shape = definition.ordered ? "chain" : "match";
  for (const std::string& part : parts) shape.append("|").append(part);
  return shape;
}

/// Entries whose values occur in the keys of a policy, once each.
std::vector<std::string> ValuesIn(const Definition& definition) {
  std::vector<std::string> names;
  for (const EntryMatch& entry : definition.match) {
    const auto same = [&entry](const EntryMatch& other) { return other.name == entry.name; };
    const bool once = std::count_if(definition.match.begin(), definition.match.end(), same) == 1;
    if (once && KeyHasValue(definition, entry.name)) names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Whether shapes can apply to one descriptor, whatever their values.
bool ShapesMeet(const Definition& a, const Definition& b) {
  if (a.ordered && b.ordered) return false;
  const auto lacks = [](const Definition& chain, const Definition& other) {
    return std::any_of(other.match.begin(), other.match.end(), [&chain](const EntryMatch& entry) {
      return std::none_of(chain.match.begin(), chain.match.end(),
                          [&entry](const EntryMatch& mine) { return mine.name == entry.name; });
    });
  };
  return !(a.ordered && lacks(a, b)) && !(b.ordered && lacks(b, a));
}

bool Meet(const Member& a, const Member& b) {
  if (a.shape || b.shape) return ShapesMeet(*a.definition, *b.definition);
  return CanMeet(*a.definition, *b.definition);
}

std::vector<Member> MembersOf(const std::vector<const Policy*>& policies) {
  std::vector<Member> members;
  if (policies.size() <= kMaxPolicies) {
    for (const Policy* policy : policies) members.push_back({&policy->definition, {policy}});
    return members;
  }
  std::map<std::string, std::size_t> shapes;
  for (const Policy* policy : policies) {
    const auto [found, is_new] = shapes.try_emplace(ShapeOf(policy->definition), members.size());
    if (is_new) members.push_back({&policy->definition, {}, true});
    members[found->second].policies.push_back(policy);
  }
  return members;
}

/// Numbers members so that those that can meet, even if only through others, have the same number.
std::vector<std::size_t> GroupsOf(const std::vector<Member>& members) {
  std::vector<std::size_t> group(members.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = i + 1; j < members.size(); ++j) {
      if (group[i] == group[j] || !Meet(members[i], members[j])) continue;
      const std::size_t from = group[j];
      std::replace(group.begin(), group.end(), from, group[i]);
    }
  }
  return group;
}

/// Members that can meet share the entries whose values all their keys have.
void Place(const std::vector<Member>& members, KeyPlaces& places) {
  if (members.size() > kMaxShapes) return;
  const std::vector<std::size_t> groups = GroupsOf(members);
  std::map<std::size_t, std::vector<std::string>> common;
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::vector<std::string> mine = ValuesIn(*members[i].definition);
    const auto [found, is_new] = common.try_emplace(groups[i], mine);
    if (is_new) continue;
    std::vector<std::string> both;
    std::set_intersection(mine.begin(), mine.end(), found->second.begin(), found->second.end(),
                          std::back_inserter(both));
    found->second = std::move(both);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    KeyPlace place;
    for (const std::string& name : common[groups[i]]) {
      AppendEntryName(place.entries.emplace_back(), name);
    }
    if (place.entries.empty()) continue;
    for (const Policy* policy : members[i].policies) places[HeadOf(*policy)] = place;
  }
}

/// Per domain; beyond this the answer would cost more than it is worth.
constexpr std::size_t kMaxPairs = 4'000'000;

/// Whether a request whose entries have one value each can have a descriptor for each of the two,
/// but none for both.
bool MeetApart(const Definition& a, const Definition& b) {
  if (CanMeet(a, b)) return false;
  bool same = a.match.size() == b.match.size();
  for (const EntryMatch& entry : a.match) {
    const EntryMatch* other = EntryOf(b, entry.name);
    same = same && other != nullptr;
    if (other != nullptr && !ValuesMeet(entry, *other)) return false;
  }
  return !same;
}

std::optional<std::string> CrossingIn(const std::vector<const Policy*>& policies,
                                      const KeyPlaces& places) {
  const auto place_of = [&places](const Policy* policy) {
    const auto found = places.find(HeadOf(*policy));
    return found == places.end() ? KeyPlace{} : found->second;
  };
  std::size_t pairs = 0;
  for (auto one = policies.begin(); one != policies.end(); ++one) {
    for (auto other = std::next(one); other != policies.end(); ++other) {
      if (++pairs > kMaxPairs) return std::nullopt;
      const Definition& a = (*one)->definition;
      const Definition& b = (*other)->definition;
      if (!MeetApart(a, b) || place_of(*one) == place_of(*other)) continue;
      return "policies '" + a.name + "' and '" + b.name + "' of domain '" + a.domain +
             "' never apply to one descriptor, so their keys are in different slots of the "
             "cluster. A request with a descriptor for each is charged slot by slot: another "
             "request can be refused by permits that are then given back, a node that crashes "
             "leaves them charged, and a reservation is refused. To charge both at once, add "
             "?spread=off to the URL of the store";
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> CrossingPolicies(const PolicySet& set, std::string_view store) {
  std::map<std::string, std::vector<const Policy*>> domains;
  for (const Policy& policy : set.policies()) {
    const Definition& definition = policy.definition;
    if (!definition.quota || !definition.has_match || definition.shadow) continue;
    if (!definition.store.empty() && definition.store != store) continue;
    if (!ChargesTogether(definition.charge)) continue;  // never charged with others
    domains[definition.domain].push_back(&policy);
  }
  const KeyPlaces places = SpreadOf(set);
  std::vector<std::string> crossings;
  for (const auto& [name, policies] : domains) {
    if (auto crossing = CrossingIn(policies, places)) crossings.push_back(std::move(*crossing));
  }
  return crossings;
}

KeyPlaces SpreadOf(const PolicySet& set) {
  KeyPlaces places;
  std::map<std::string, std::vector<const Policy*>> domains;
  for (const Policy& policy : set.policies()) {
    const Definition& definition = policy.definition;
    if (!definition.quota || !definition.has_match) continue;
    if (!ChargesTogether(definition.charge)) {
      places[HeadOf(policy)].whole = true;
    } else {
      domains[definition.domain].push_back(&policy);
    }
  }
  for (const auto& [name, policies] : domains) Place(MembersOf(policies), places);
  return places;
}

}  // namespace weir::policy
