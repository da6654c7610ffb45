#include "admin/policy_expiry.h"

#include <utility>
#include <vector>

#include "admin/policy_changes.h"
#include "admin/policy_edit.h"
#include "telemetry/log.h"

namespace weir::admin {
namespace {

using policy::StoredPolicy;

constexpr std::size_t kEntriesAtOnce = 1000;
constexpr Nanos kRetry = 5'000'000'000;
/// How long before a policy's end the policy to restore is read.
constexpr Nanos kAhead = Nanos{24} * 3600 * 1'000'000'000;
/// How many policies are read at a time, since other calls wait for the database, too.
constexpr std::size_t kReadsAtOnce = 100;

/// What was in force before the changes that had an end; empty if the policy was created with one.
/// An error if the history does not go back that far: only some versions are kept, and a Redis can
/// lose all of them.
Result<std::optional<StoredPolicy>> BeforeExpiry(const StoredPolicy& expired,
                                                 const std::vector<policy::PolicyChange>& history) {
  using Before = std::optional<StoredPolicy>;
  std::int64_t oldest = expired.version;
  for (const policy::PolicyChange& change : history) {
    for (const std::string* const json : {&change.after, &change.before}) {
      if (json->empty()) return Before();  // created with an end, perhaps after a deletion
      Result<StoredPolicy> state = PolicyOf(*json);
      if (!state.ok()) return state.error();
      if (state->expires_at == 0) return Before(std::move(*state));
      oldest = policy::VersionIn(*json);
    }
  }
  if (oldest == 1) return Before();
  return Error{Code::kInvalidArgument,
               "its history does not go back to what was in force before it; update it without "
               "expiresAt, or delete it"};
}

/// Whether a change was refused because of its content, not because the store accepts none.
bool IsRefusal(const Error& error) noexcept {
  return error.code == Code::kInvalidArgument || error.code == Code::kAlreadyExists ||
         error.code == Code::kNotFound || error.code == Code::kFailedPrecondition;
}

/// A policy that cannot end stays in force, and is tried again. If another node has ended it, or
/// the database is down, there is nothing to log.
void TellStuck(const std::string& key, const Error& why) {
  if (why.code != Code::kInvalidArgument && why.code != Code::kAlreadyExists) return;
  telemetry::Log(telemetry::Level::kError,
                 "an expired policy stays in force: the previous version cannot be restored",
                 {{"policy", std::string_view(key)}, {"error", std::string_view(why.message)}});
}

}  // namespace

PolicyExpiry::PolicyExpiry(policy::PolicyStore& store, policy::Catalog& catalog)
    : store_(store), catalog_(catalog) {}

std::optional<PolicyExpiry::Before> PolicyExpiry::Find(const StoredPolicy& policy) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(policy.key);
  if (found == known_.end() || found->second.version != policy.version) return std::nullopt;
  return found->second;
}

void PolicyExpiry::Keep(const StoredPolicy& policy, std::optional<StoredPolicy> before) {
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(policy.key, Before{policy.version, std::move(before)});
}

std::optional<std::size_t> PolicyExpiry::Reading(const StoredPolicy& policy) const {
  const std::lock_guard lock(mutex_);
  if (reading_.contains({policy.key, policy.version})) return std::nullopt;
  return reading_.size();
}

void PolicyExpiry::ForgetOthers(const std::set<std::string, std::less<>>& keys) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&keys](const auto& one) { return !keys.contains(one.first); });
}

void PolicyExpiry::EndOne(const StoredPolicy& expired) {
  using History = std::vector<policy::PolicyChange>;
  store_.History(expired.key, kEntriesAtOnce,
                 [self = shared_from_this(), expired](const Result<History>& history) {
                   if (!history.ok()) return self->EndHere(expired, history.error());
                   auto before = BeforeExpiry(expired, *history);
                   if (auto known = self->Find(expired); known && !before.ok()) {
                     before = std::move(known->policy);  // lost there, but this node has read it
                   }
                   if (!before.ok()) return TellStuck(expired.key, before.error());
                   self->Keep(expired, *before);
                   // This version only: another node may have ended it already.
                   Submit(self->store_,
                          {.key = expired.key,
                           .wanted = std::move(*before),
                           .who = "expiry",
                           .action = "policy.expire",
                           .must = policy::PolicyEdit::Must::kExist,
                           .version = expired.version},
                          [self, expired](const auto& ended) {
                            if (ended.ok()) return;
                            TellStuck(expired.key, ended.error());
                            self->EndHere(expired, ended.error());
                          });
                 });
}

/// The store accepts no changes. It is tried again later; until then the end applies to this node.
void PolicyExpiry::EndHere(const StoredPolicy& expired, const Error& why) {
  if (IsRefusal(why)) return;
  std::optional<Before> known = Find(expired);
  if (!known && !BeforeExpiry(expired, {}).ok()) return;  // what it replaced is unknown now
  const Status ended =
      store_.EndHere(expired, known ? std::move(known->policy) : std::optional<StoredPolicy>());
  if (!ended.ok()) TellStuck(expired.key, ended.error());
}

void PolicyExpiry::LookAhead(const StoredPolicy& policy) {
  {
    const std::lock_guard lock(mutex_);
    reading_.emplace(policy.key, policy.version);
  }
  store_.History(policy.key, kEntriesAtOnce,
                 [self = shared_from_this(),
                  policy](const Result<std::vector<policy::PolicyChange>>& history) {
                   if (history.ok()) {
                     auto before = BeforeExpiry(policy, *history);
                     if (before.ok()) self->Keep(policy, std::move(*before));
                   }  // otherwise read again when the database is back
                   const std::lock_guard lock(self->mutex_);
                   self->reading_.erase({policy.key, policy.version});
                 });
}

Nanos PolicyExpiry::Look(const StoredPolicy& policy, Nanos now, std::size_t& reads) {
  if (policy.expires_at <= now) {
    EndOne(policy);
    return now + kRetry;  // if it could not be ended, it is tried again later
  }
  if (policy.expires_at - kAhead > now) return policy.expires_at - kAhead;
  if (Find(policy)) return policy.expires_at;
  const auto reading = Reading(policy);
  if (!reading) return policy.expires_at;
  if (*reading >= kReadsAtOnce || reads++ >= kReadsAtOnce) return now + 1;
  LookAhead(policy);
  return policy.expires_at;
}

void PolicyExpiry::EndExpired(Nanos now) {
  const std::uint64_t version = catalog_.live().version();
  if (version == seen_version_ && (next_expiry_ == 0 || now < next_expiry_)) return;
  seen_version_ = version;
  next_expiry_ = 0;
  std::size_t reads = 0;
  std::set<std::string, std::less<>> ending;
  std::string after;
  do {
    policy::PolicyStore::Page page = store_.List(after, kEntriesAtOnce);
    for (const StoredPolicy& policy : page.policies) {
      if (policy.expires_at == 0) continue;
      ending.insert(policy.key);
      const Nanos look = Look(policy, now, reads);
      if (next_expiry_ == 0 || look < next_expiry_) next_expiry_ = look;
    }
    after = std::move(page.next);
  } while (!after.empty());
  ForgetOthers(ending);
}

}  // namespace weir::admin
