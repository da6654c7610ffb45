#include "server/api/policy_changes.h"

#include <simdjson.h>

#include <utility>
#include <vector>

#include "protocol/http/policy_body.h"
#include "telemetry/log.h"

namespace weir::server {
namespace {

using policy::StoredPolicy;

constexpr std::size_t kPage = 1000;
constexpr Nanos kRetry = 5'000'000'000;
constexpr std::string_view kTarget = "policy:";

/// A policy that comes back does not end a second time at a moment that has passed.
StoredPolicy WithoutPastExpiry(StoredPolicy policy) {
  if (policy.expires_at != 0 && policy.expires_at <= SystemClock::Get().Now()) {
    policy.expires_at = 0;
  }
  return policy;
}

}  // namespace

Result<StoredPolicy> PolicyOf(const std::string& json) {
  std::string padded = json;
  padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  return http::ReadPolicy(padded);
}

void PolicyChanges::Create(StoredPolicy policy, std::string who, Done done) {
  std::string key = policy.key;
  Submit({.action = "policy.create",
          .who = std::move(who),
          .key = std::move(key),
          .wanted = std::move(policy),
          .must_be_new = true,
          .done = std::move(done)});
}

void PolicyChanges::Update(StoredPolicy policy, std::string who, Done done) {
  std::string key = policy.key;
  Submit({.action = "policy.update",
          .who = std::move(who),
          .key = std::move(key),
          .wanted = std::move(policy),
          .must_exist = true,
          .done = std::move(done)});
}

void PolicyChanges::Delete(std::string key, std::string who, Done done) {
  Submit({.action = "policy.delete",
          .who = std::move(who),
          .key = std::move(key),
          .must_exist = true,
          .done = std::move(done)});
}

void PolicyChanges::RollBack(std::string key, std::int64_t version, std::string who, Done done) {
  Result<std::vector<policy::PolicyChange>> history = store_.History(key, kPage);
  if (!history.ok()) return done(history.error());
  for (const policy::PolicyChange& change : *history) {
    if (change.after.empty() || policy::VersionIn(change.after) != version) continue;
    Result<StoredPolicy> wanted = PolicyOf(change.after);
    if (!wanted.ok()) return done(wanted.error());
    return Submit({.action = "policy.rollback",
                   .who = std::move(who),
                   .key = std::move(key),
                   .wanted = WithoutPastExpiry(std::move(*wanted)),
                   .done = std::move(done)});
  }
  done(Error{Code::kNotFound,
             "policy '" + key + "' has no version " + std::to_string(version) + " in its history"});
}

void PolicyChanges::Undo(std::int64_t id, std::string who, Done done) {
  Result<AuditEntry> entry = audit_.Get(id);
  if (!entry.ok()) return done(entry.error());
  if (!entry->target.starts_with(kTarget)) {
    return done(Error{Code::kFailedPrecondition,
                      "'" + entry->action + "' cannot be undone; only changes of policies can"});
  }
  Change change{.action = "policy.undo",
                .who = std::move(who),
                .key = entry->target.substr(kTarget.size()),
                .undoes = id,
                .done = std::move(done)};
  if (!entry->before.empty()) {
    Result<StoredPolicy> before = PolicyOf(entry->before);
    if (!before.ok()) return change.done(before.error());
    change.wanted = WithoutPastExpiry(std::move(*before));
  }
  Submit(std::move(change));
}

void PolicyChanges::Submit(Change change) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(change));
    if (queue_.size() > 1) return;
  }
  RunNext();
}

void PolicyChanges::RunNext() {
  Change* first = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // Others are appended behind it meanwhile, which leaves it where it is.
    first = &queue_.front();
  }
  Run(*first);
}

Status PolicyChanges::CheckBegin(const Change& change, const Result<StoredPolicy>& now) const {
  if (change.must_exist && !now.ok()) return now.error();
  if (change.expiring != 0 && (!now.ok() || now->expires_at != change.expiring)) {
    return Error{Code::kFailedPrecondition, "the policy has changed"};
  }
  if (change.undoes == 0) return {};
  Result<std::int64_t> latest = audit_.LatestOf(std::string(kTarget) + change.key);
  if (!latest.ok()) return latest.error();
  if (*latest != change.undoes) {
    return Error{Code::kFailedPrecondition, "change " + std::to_string(change.undoes) +
                                                " is not the latest of policy '" + change.key +
                                                "'; undo change " + std::to_string(*latest) +
                                                " first, or roll back to a version"};
  }
  return {};
}

void PolicyChanges::Run(Change& change) {
  const Result<StoredPolicy> now = store_.Get(change.key);
  if (Status begin = CheckBegin(change, now); !begin.ok()) return End(begin.error());
  if (now.ok()) change.before = policy::ToJson(*now);
  const auto finish = [this](const Result<StoredPolicy>& result) { Finish(result); };
  if (!change.wanted) {
    store_.Delete(change.key, change.who, finish);
  } else if (now.ok() && !change.must_be_new) {
    store_.Update(*change.wanted, change.who, finish);
  } else {
    store_.Create(*change.wanted, change.who, finish);
  }
}

void PolicyChanges::Finish(const Result<StoredPolicy>& result) {
  if (!result.ok()) return End(result.error());
  Change* change = nullptr;
  {
    const std::lock_guard lock(mutex_);
    change = &queue_.front();
  }
  std::optional<StoredPolicy> after;
  if (change->wanted) after = *result;
  AuditEntry entry{.who = change->who,
                   .action = change->action,
                   .target = std::string(kTarget) + change->key,
                   .before = change->before,
                   .after = after ? policy::ToJson(*after) : "",
                   .undoes = change->undoes};
  telemetry::Log(telemetry::Level::kInfo, entry.action,
                 {{"policy", std::string_view(change->key)}, {"who", std::string_view(entry.who)}});
  audit_.Append(std::move(entry), [this, after = std::move(after)](Result<std::int64_t> written) {
    if (!written.ok()) return End(written.error());
    End(after);
  });
}

void PolicyChanges::End(Result<std::optional<StoredPolicy>> outcome) {
  Done done;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    done = std::move(queue_.front().done);
    queue_.pop_front();
    // Whoever finds the queue empty runs his change himself.
    more = !queue_.empty();
  }
  done(std::move(outcome));
  if (more) RunNext();
}

/// What was in force before the changes that had an end: nothing if it was made with one.
std::optional<StoredPolicy> PolicyChanges::StateBeforeExpiry(const std::string& key) {
  Result<std::vector<policy::PolicyChange>> history = store_.History(key, kPage);
  if (!history.ok()) return std::nullopt;
  for (const policy::PolicyChange& change : *history) {
    if (change.after.empty()) return std::nullopt;  // deleted, and made anew with an end
    Result<StoredPolicy> state = PolicyOf(change.after);
    if (state.ok() && state->expires_at == 0) return std::move(*state);
  }
  return std::nullopt;
}

void PolicyChanges::EndExpired(Nanos now) {
  const std::uint64_t version = catalog_.live().version();
  if (version == seen_version_ && (next_expiry_ == 0 || now < next_expiry_)) return;
  seen_version_ = version;
  next_expiry_ = 0;
  std::string after;
  do {
    policy::PolicyStore::Page page = store_.List(after, kPage);
    for (const StoredPolicy& policy : page.policies) {
      if (policy.expires_at == 0) continue;
      // One that could not be ended is tried again after a while.
      const Nanos look = policy.expires_at > now ? policy.expires_at : now + kRetry;
      if (next_expiry_ == 0 || look < next_expiry_) next_expiry_ = look;
      if (policy.expires_at > now) continue;
      Submit({.action = "policy.expire",
              .who = "expiry",
              .key = policy.key,
              .wanted = StateBeforeExpiry(policy.key),
              .must_exist = true,
              .expiring = policy.expires_at,
              .done = [](const auto&) {}});
    }
    after = std::move(page.next);
  } while (!after.empty());
}

}  // namespace weir::server
