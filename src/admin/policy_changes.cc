#include "admin/policy_changes.h"

#include <simdjson.h>

#include <utility>
#include <vector>

#include "admin/file_changes.h"
#include "admin/policy_body.h"
#include "admin/policy_edit.h"
#include "admin/policy_expiry.h"
#include "admin/undo_order.h"
#include "admin/undoable.h"
#include "base/instant.h"
#include "telemetry/log.h"

namespace weir::admin {
namespace {

using policy::PolicyEdit;
using policy::StoredPolicy;

constexpr std::size_t kPage = 1000;

/// A policy to restore, with the requested end or its own.
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

/// After a deletion no policy is in force.
PolicyChanges::Done WithoutPolicy(PolicyChanges::Done done) {
  return [done = std::move(done)](const Result<std::optional<StoredPolicy>>& outcome) {
    if (!outcome.ok()) return done(outcome.error());
    done(std::optional<StoredPolicy>());
  };
}

void UndoInTurn(policy::PolicyStore& store, const policy::AuditEntry& entry,
                const std::vector<policy::AuditEntry>& entries, PolicyChanges::End end,
                const std::string& who, const PolicyChanges::Done& done) {
  const Status turn = CheckTurn(entry, entries, ", or roll back to a version");
  if (!turn.ok()) return done(turn.error());
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
  Submit(store, std::move(edit), done);
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

PolicyChanges::PolicyChanges(policy::PolicyStore& store, policy::Catalog& catalog)
    : store_(store), catalog_(catalog), expiry_(std::make_shared<PolicyExpiry>(store, catalog)) {}

Result<std::optional<StoredPolicy>> PolicyChanges::Check(StoredPolicy policy) const {
  if (const policy::PolicyHealth health = store_.health(); !health.up) {
    return Error{Code::kUnavailable, "the policy store is down: " + health.last_error};
  }
  policy::PolicyState state{.policies = store_.List({}, 1).total};
  if (auto now = store_.Get(policy.key); now.ok()) state.now = std::move(*now);
  const std::string key = policy.key;
  const PolicyEdit edit{.key = key, .wanted = std::move(policy)};
  if (Status valid = policy::CheckEdit(edit); !valid.ok()) return valid.error();
  Result<policy::PolicyStep> step = policy::Decide(edit, state, SystemClock::Get().Now(), catalog_);
  if (!step.ok()) return step.error();
  return std::move(step->after);
}

void PolicyChanges::Create(StoredPolicy policy, std::string who, Done done) {
  auto told = Logged("policy.create", policy.key, who, std::move(done));
  store_.Create(std::move(policy), std::move(who), std::move(told));
}

void PolicyChanges::Update(StoredPolicy policy, std::string who, Done done, std::int64_t version) {
  std::string key = policy.key;
  Submit(store_,
         {.key = std::move(key),
          .wanted = std::move(policy),
          .who = std::move(who),
          .action = "policy.update",
          .must = PolicyEdit::Must::kExist,
          .version = version},
         std::move(done));
}

void PolicyChanges::Delete(std::string key, std::string who, Done done, std::int64_t version) {
  Submit(
      store_,
      {.key = std::move(key), .who = std::move(who), .action = "policy.delete", .version = version},
      std::move(done));
}

void PolicyChanges::RollBack(const std::string& key, std::int64_t version, End end, std::string who,
                             Done done) {
  store_.History(
      key, kPage,
      [&store = store_, key, version, end, who = std::move(who),
       done = std::move(done)](const Result<std::vector<policy::PolicyChange>>& history) {
        if (!history.ok()) return done(history.error());
        for (const policy::PolicyChange& change : *history) {
          if (policy::VersionIn(change.after) != version) continue;
          Result<StoredPolicy> wanted = PolicyOf(change.after);
          if (!wanted.ok()) return done(wanted.error());
          wanted = Returning(std::move(*wanted), "version " + std::to_string(version), end);
          if (!wanted.ok()) return done(wanted.error());
          return Submit(
              store,
              {.key = key, .wanted = std::move(*wanted), .who = who, .action = "policy.rollback"},
              done);
        }
        done(Error{Code::kNotFound, "policy '" + key + "' has no version " +
                                        std::to_string(version) + " in its history"});
      });
}

void PolicyChanges::Undo(std::int64_t id, End end, std::string who, Done done) {
  store_.FindEntry(id, [&store = store_, id, end, who = std::move(who),
                        done = std::move(done)](const Result<policy::AuditEntry>& entry) {
    if (!entry.ok()) return done(entry.error());
    if (entry->target.starts_with(kFileTarget)) {
      return done(Error{Code::kFailedPrecondition,
                        "the change came from " + entry->who + "; edit that file to undo it"});
    }
    if (!entry->target.starts_with(policy::kPolicyTarget)) {
      return done(CannotUndo(entry->action));
    }
    store.ListEntries({.limit = kPage, .target = entry->target},
                      [&store, entry = *entry, end, who,
                       done](const Result<std::vector<policy::AuditEntry>>& entries) {
                        if (!entries.ok()) return done(entries.error());
                        UndoInTurn(store, entry, *entries, end, who, done);
                      });
  });
}

void PolicyChanges::EndExpired(Nanos now) { expiry_->EndExpired(now); }

void Submit(policy::PolicyStore& store, PolicyEdit edit, PolicyChanges::Done done) {
  if (!edit.wanted) done = WithoutPolicy(std::move(done));
  auto told = Logged(edit.action, edit.key, edit.who, std::move(done));
  store.Change(std::move(edit), std::move(told));
}

}  // namespace weir::admin
