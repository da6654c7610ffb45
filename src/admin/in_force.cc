#include "admin/in_force.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "telemetry/log.h"

namespace weir::policy {
namespace {

void LogUnable(const std::vector<std::string>& unable) {
  using telemetry::Level;
  for (const std::string& why : unable) {
    telemetry::Log(Level::kError, "this node cannot apply a policy; its on_store_error decides",
                   {{"reason", std::string_view(why)}});
  }
  if (unable.empty()) telemetry::Log(Level::kInfo, "this node can apply all policies again");
}

}  // namespace

Status InForce::Put(PolicyMap policies) {
  const std::lock_guard alone(putting_);
  if (Status put = PutLocked(policies); !put.ok()) return put;
  std::erase_if(ended_, [&policies](const auto& ended) {
    const auto stored = policies.find(ended.first);
    return stored == policies.end() || !ended.second.Is(stored->second);
  });
  const std::lock_guard lock(mutex_);
  policies_ = std::move(policies);
  return {};
}

Status InForce::End(const StoredPolicy& expired, std::optional<StoredPolicy> before) {
  const std::lock_guard alone(putting_);
  // Only this function and Put change policies_.
  const auto stored = policies_.find(expired.key);
  Ended ended{expired.version, expired.expires_at, std::move(before)};
  if (stored == policies_.end() || !ended.Is(stored->second)) return {};  // changed meanwhile
  const auto known = ended_.find(expired.key);
  if (known != ended_.end() && known->second.Is(expired)) return {};
  ended_.insert_or_assign(expired.key, std::move(ended));
  Status put = PutLocked(policies_);
  if (!put.ok()) ended_.erase(expired.key);
  return put;
}

/// What is in force for a stored policy; null: nothing.
const StoredPolicy* InForce::Standing(const StoredPolicy& policy) const {
  const auto ended = ended_.find(policy.key);
  if (ended == ended_.end() || !ended->second.Is(policy)) return &policy;
  return ended->second.before ? &*ended->second.before : nullptr;
}

Status InForce::PutLocked(const PolicyMap& policies) {
  std::vector<Definition> definitions;
  definitions.reserve(policies.size());
  std::vector<ShadowOverride> overrides;
  const auto damaged = [](const std::string& key, const Error& error) {
    return Error{Code::kInternal, "the stored policy '" + key + "' is damaged: " + error.message};
  };
  for (const auto& [key, stored] : policies) {
    const StoredPolicy* const standing = Standing(stored);
    if (standing == nullptr) continue;
    const StoredPolicy& policy = *standing;
    if (policy.type.is_override()) {
      Result<ShadowOverride> over = ToOverride(policy);
      if (!over.ok()) return damaged(key, over.error());
      overrides.push_back(std::move(*over));
      continue;
    }
    Result<Definition> definition = ToDefinition(policy);
    if (!definition.ok()) return damaged(key, definition.error());
    definitions.push_back(std::move(*definition));
  }
  if (Status set = catalog_.SetStored(std::move(definitions), std::move(overrides)); !set.ok()) {
    return set;
  }
  std::vector<std::string> unable = catalog_.status().unable;
  if (unable != unable_) LogUnable(unable);
  unable_ = std::move(unable);
  return {};
}

Result<StoredPolicy> InForce::Get(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto found = policies_.find(key);
  if (found == policies_.end()) return NoSuchPolicy(key);
  return found->second;
}

PolicyStore::Page InForce::List(std::string_view after, std::size_t limit) const {
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  PolicyStore::Page page;
  const std::lock_guard lock(mutex_);
  page.total = policies_.size();
  auto at = after.empty() ? policies_.begin() : policies_.upper_bound(after);
  for (; at != policies_.end() && page.policies.size() < limit; ++at) {
    page.policies.push_back(at->second);
  }
  if (at != policies_.end()) page.next = page.policies.back().key;
  return page;
}

}  // namespace weir::policy
