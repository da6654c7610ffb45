// The policies for bare keys: of a check that has only a key, and of the keys that a request stands
// for in addition to its descriptors.

#include <algorithm>
#include <cstddef>

#include "base/ip.h"
#include "limiter/batch.h"

namespace weir::limiter {
namespace {

/// An address is known from the connection. A client that uses one as its key or user name must not
/// get what the policy for that address grants.
bool Impersonates(const policy::Entry& subject) {
  if (subject.key != "api_key" && subject.key != "user") return false;
  return IpAddress::Parse(subject.value).has_value() || IpNetwork::Parse(subject.value).ok();
}

}  // namespace

/// A policy on trial does not replace an enforced one: the default stays in force beside it.
Status Batch::CollectKey(const policy::PolicySet& set, const policy::Request& request) {
  const policy::Policy& policy = set.ForKey(request.key);
  if (Status added = AddBareKey(policy, request.key, request.cost); !added.ok()) return added;
  if (!policy.definition.shadow || &policy == &set.default_policy()) return {};
  return AddBareKey(set.default_policy(), request.key, request.cost);
}

Status Batch::CollectSubjects(const policy::PolicySet& set, const policy::Request& request) {
  for (const policy::Entry& subject : request.subjects) {
    const policy::Policy& policy = set.ForKey(subject.value);
    if (&policy == &set.default_policy()) continue;
    if (Impersonates(subject)) continue;
    if (!policy.definition.shadow) DropGeneral(subject.key);
    if (Status added = AddBareKey(policy, subject.value, request.cost); !added.ok()) return added;
  }
  const auto enforced = [](const Item& item) { return !item.shadow(); };
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(check_begin_);
  if (!request.default_applies || std::any_of(begin, items_.end(), enforced)) return {};
  return AddBareKey(set.default_policy(), request.subjects.front().value, request.cost);
}

Status Batch::AddBareKey(const policy::Policy& policy, std::string_view key, std::int64_t cost) {
  const std::size_t key_at = keys_.size();
  if (policy.quota() != nullptr) policy::AppendBucket(keys_, policy, key);
  Item item;
  item.policy = &policy;
  item.quota = policy.quota();
  item.lease = policy.lease ? &*policy.lease : nullptr;
  item.cost = CostOf(cost, policy.definition.cost);
  SetMode(item);
  return FinishKey(item, key_at);
}

/// Removes the policies for any value of this entry alone: one for exactly its value is more
/// specific.
void Batch::DropGeneral(std::string_view entry) {
  const auto general = [entry](const Item& item) {
    if (item.policy == nullptr) return false;
    const policy::Definition& definition = item.policy->definition;
    return !definition.ordered && definition.match.size() == 1 &&
           definition.match[0].name == entry &&
           definition.match[0].kind != policy::MatchKind::kExact;
  };
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(check_begin_);
  items_.erase(std::remove_if(begin, items_.end(), general), items_.end());
}

}  // namespace weir::limiter
