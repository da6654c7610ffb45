#include "admin/policy_changes.h"

#include <simdjson.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "admin/file_changes.h"
#include "admin/policy_body.h"
#include "admin/policy_edit.h"
#include "admin/undo_order.h"
#include "admin/undoable.h"
#include "base/instant.h"
#include "telemetry/log.h"

namespace weir::admin {
namespace {

using policy::PolicyEdit;
using policy::StoredPolicy;

constexpr std::size_t kPage = 1000;
constexpr Nanos kRetry = 5'000'000'000;
/// So long before a policy ends, what comes back then is read.
constexpr Nanos kAhead = Nanos{24} * 3600 * 1'000'000'000;
/// Of so many policies at a time: others wait for the database, too.
constexpr int kReadsAtOnce = 100;

/// A policy that comes back, with the end that is asked for or its own.
Result<StoredPolicy> Returning(StoredPolicy policy, const std::string& what,
                               PolicyChanges::End end) {
  if (end) {
    if (Status ends = CheckEnd(*end); !ends.ok()) return ends.error();
    policy.expires_at = *end;
  }
  if (CheckEnd(policy.expires_at).ok()) return policy;
  return Error{Code::kFailedPrecondition, what + " ended at " + FormatInstant(policy.expires_at) +
                                              "; give a new expiresAt, or null to keep it"};
}

/// Writes a change to the program's log before it is answered.
policy::PolicyStore::Done Logged(std::string action, std::string key, std::string who,
                                 PolicyChanges::Done done) {
  return [action = std::move(action), key = std::move(key), who = std::move(who),
          done = std::move(done)](Result<StoredPolicy> result) {
    if (!result.ok()) return done(result.error());
    telemetry::Log(telemetry::Level::kInfo, action,
                   {{"policy", std::string_view(key)}, {"who", std::string_view(who)}});
    done(std::optional<StoredPolicy>(std::move(*result)));
  };
}

/// After a deletion nothing is in force.
PolicyChanges::Done WithoutPolicy(PolicyChanges::Done done) {
  return [done = std::move(done)](const Result<std::optional<StoredPolicy>>& outcome) {
    if (!outcome.ok()) return done(outcome.error());
    done(std::optional<StoredPolicy>());
  };
}

/// What was in force before the changes that had an end: nothing if the policy was made with one.
/// An error if the history does not go back so far: only so many versions are kept, and a Redis can
/// lose all of them.
Result<std::optional<StoredPolicy>> BeforeExpiry(const StoredPolicy& expired,
                                                 const std::vector<policy::PolicyChange>& history) {
  using Before = std::optional<StoredPolicy>;
  std::int64_t oldest = expired.version;
  for (const policy::PolicyChange& change : history) {
    for (const std::string* const json : {&change.after, &change.before}) {
      if (json->empty()) return Before();  // made with an end, perhaps after a deletion
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

/// Whether a change was refused because of what it was, and not because the store takes none.
bool IsRefusal(const Error& error) noexcept {
  return error.code == Code::kInvalidArgument || error.code == Code::kAlreadyExists ||
         error.code == Code::kNotFound || error.code == Code::kFailedPrecondition;
}

/// One that cannot end stays in force, and is tried again. That another node has ended it, or that
/// the database is down, is no news.
void TellStuck(const std::string& key, const Error& why) {
  if (why.code != Code::kInvalidArgument && why.code != Code::kAlreadyExists) return;
  telemetry::Log(telemetry::Level::kError,
                 "an expired policy stays in force: the one before it cannot come back",
                 {{"policy", std::string_view(key)}, {"error", std::string_view(why.message)}});
}

}  // namespace

Result<StoredPolicy> PolicyOf(const std::string& json) {
  std::string padded = json;
  padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  return http::ReadPolicy(padded);
}

Status CheckEnd(Nanos end) {
  if (end == 0 || end > SystemClock::Get().Now()) return {};
  return Error{Code::kInvalidArgument,
               "expiresAt: " + FormatInstant(end) + " is in the past; give a later time, or null"};
}

/// Thread-safe.
class PolicyChanges::Befores {
 public:
  std::optional<Before> Find(const StoredPolicy& policy) const {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(policy.key);
    if (found == known_.end() || found->second.version != policy.version) return std::nullopt;
    return found->second;
  }
  void Keep(const StoredPolicy& policy, std::optional<StoredPolicy> before) {
    const std::lock_guard lock(mutex_);
    known_.insert_or_assign(policy.key, Before{policy.version, std::move(before)});
  }
  void ForgetOthers(const std::set<std::string, std::less<>>& keys) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [&keys](const auto& one) { return !keys.contains(one.first); });
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Before, std::less<>> known_;
};

PolicyChanges::PolicyChanges(policy::PolicyStore& store, policy::Catalog& catalog)
    : store_(store), catalog_(catalog), befores_(std::make_shared<Befores>()) {}

void PolicyChanges::Create(StoredPolicy policy, std::string who, Done done) {
  auto told = Logged("policy.create", policy.key, who, std::move(done));
  store_.Create(std::move(policy), std::move(who), std::move(told));
}

void PolicyChanges::Update(StoredPolicy policy, std::string who, Done done, std::int64_t version) {
  std::string key = policy.key;
  Submit({.key = std::move(key),
          .wanted = std::move(policy),
          .who = std::move(who),
          .action = "policy.update",
          .must = PolicyEdit::Must::kExist,
          .version = version},
         std::move(done));
}

void PolicyChanges::Delete(std::string key, std::string who, Done done, std::int64_t version) {
  Submit(
      {.key = std::move(key), .who = std::move(who), .action = "policy.delete", .version = version},
      std::move(done));
}

void PolicyChanges::RollBack(const std::string& key, std::int64_t version, End end, std::string who,
                             Done done) {
  store_.History(
      key, kPage,
      [this, key, version, end, who = std::move(who),
       done = std::move(done)](const Result<std::vector<policy::PolicyChange>>& history) {
        if (!history.ok()) return done(history.error());
        for (const policy::PolicyChange& change : *history) {
          if (policy::VersionIn(change.after) != version) continue;
          Result<StoredPolicy> wanted = PolicyOf(change.after);
          if (!wanted.ok()) return done(wanted.error());
          wanted = Returning(std::move(*wanted), "version " + std::to_string(version), end);
          if (!wanted.ok()) return done(wanted.error());
          return Submit(
              {.key = key, .wanted = std::move(*wanted), .who = who, .action = "policy.rollback"},
              done);
        }
        done(Error{Code::kNotFound, "policy '" + key + "' has no version " +
                                        std::to_string(version) + " in its history"});
      });
}

void PolicyChanges::Undo(std::int64_t id, End end, std::string who, Done done) {
  store_.FindEntry(id, [this, id, end, who = std::move(who),
                        done = std::move(done)](const Result<policy::AuditEntry>& entry) {
    if (!entry.ok()) return done(entry.error());
    if (entry->target.starts_with(kFileTarget)) {
      return done(Error{Code::kFailedPrecondition,
                        "the change came from " + entry->who + "; edit that file to undo it"});
    }
    if (!entry->target.starts_with(policy::kPolicyTarget)) {
      return done(CannotUndo(entry->action));
    }
    store_.ListEntries({.limit = kPage, .target = entry->target},
                       [this, entry = *entry, end, who,
                        done](const Result<std::vector<policy::AuditEntry>>& entries) {
                         if (!entries.ok()) return done(entries.error());
                         UndoInTurn(entry, *entries, end, who, done);
                       });
  });
}

void PolicyChanges::UndoInTurn(const policy::AuditEntry& entry,
                               const std::vector<policy::AuditEntry>& entries, End end,
                               const std::string& who, const Done& done) {
  if (Status turn = CheckTurn(entry, entries); !turn.ok()) {
    Error error = turn.error();
    error.message += ", or roll back to a version";
    return done(std::move(error));
  }
  PolicyEdit edit{.key = entry.target.substr(policy::kPolicyTarget.size()),
                  .who = who,
                  .action = "policy.undo",
                  .undoes = entry.id,
                  .latest = entries.front().id};
  if (!entry.before.empty()) {
    Result<StoredPolicy> before = PolicyOf(entry.before);
    if (!before.ok()) return done(before.error());
    before =
        Returning(std::move(*before), "the state before change " + std::to_string(entry.id), end);
    if (!before.ok()) return done(before.error());
    edit.wanted = std::move(*before);
  }
  Submit(std::move(edit), done);
}

void PolicyChanges::Submit(PolicyEdit edit, Done done) {
  if (!edit.wanted) done = WithoutPolicy(std::move(done));
  auto told = Logged(edit.action, edit.key, edit.who, std::move(done));
  store_.Change(std::move(edit), std::move(told));
}

void PolicyChanges::EndOne(const StoredPolicy& expired) {
  store_.History(expired.key, kPage,
                 [this, expired](const Result<std::vector<policy::PolicyChange>>& history) {
                   if (!history.ok()) return EndHere(expired, history.error());
                   auto before = BeforeExpiry(expired, *history);
                   if (auto known = befores_->Find(expired); known && !before.ok()) {
                     before = std::move(known->policy);  // it is lost there, but was seen here
                   }
                   if (!before.ok()) return TellStuck(expired.key, before.error());
                   befores_->Keep(expired, *before);
                   // Only this version: another node may have ended it already.
                   Submit({.key = expired.key,
                           .wanted = std::move(*before),
                           .who = "expiry",
                           .action = "policy.expire",
                           .must = PolicyEdit::Must::kExist,
                           .version = expired.version},
                          [this, expired](const auto& ended) {
                            if (ended.ok()) return;
                            TellStuck(expired.key, ended.error());
                            EndHere(expired, ended.error());
                          });
                 });
}

/// The store takes no changes. It is tried again after a while; until then the end counts here.
void PolicyChanges::EndHere(const StoredPolicy& expired, const Error& why) {
  if (IsRefusal(why)) return;
  std::optional<Before> known = befores_->Find(expired);
  if (!known && !BeforeExpiry(expired, {}).ok()) return;  // nobody knows now what it replaced
  const Status ended =
      store_.EndHere(expired, known ? std::move(known->policy) : std::optional<StoredPolicy>());
  if (!ended.ok()) TellStuck(expired.key, ended.error());
}

void PolicyChanges::LookAhead(const StoredPolicy& policy) {
  store_.History(
      policy.key, kPage,
      [kept = befores_, policy](const Result<std::vector<policy::PolicyChange>>& history) {
        if (!history.ok()) return;  // read again when the database is back
        auto before = BeforeExpiry(policy, *history);
        if (before.ok()) kept->Keep(policy, std::move(*before));
      });
}

Nanos PolicyChanges::Look(const StoredPolicy& policy, Nanos now, int& reads) {
  if (policy.expires_at <= now) {
    EndOne(policy);
    return now + kRetry;  // one that could not be ended is tried again after a while
  }
  if (policy.expires_at - kAhead > now) return policy.expires_at - kAhead;
  if (befores_->Find(policy)) return policy.expires_at;
  if (reads++ >= kReadsAtOnce) return now + 1;
  LookAhead(policy);
  return policy.expires_at;
}

void PolicyChanges::EndExpired(Nanos now) {
  const std::uint64_t version = catalog_.live().version();
  if (version == seen_version_ && (next_expiry_ == 0 || now < next_expiry_)) return;
  seen_version_ = version;
  next_expiry_ = 0;
  int reads = 0;
  std::set<std::string, std::less<>> ending;
  std::string after;
  do {
    policy::PolicyStore::Page page = store_.List(after, kPage);
    for (const StoredPolicy& policy : page.policies) {
      if (policy.expires_at == 0) continue;
      ending.insert(policy.key);
      const Nanos look = Look(policy, now, reads);
      if (next_expiry_ == 0 || look < next_expiry_) next_expiry_ = look;
    }
    after = std::move(page.next);
  } while (!after.empty());
  befores_->ForgetOthers(ending);
}

}  // namespace weir::admin
