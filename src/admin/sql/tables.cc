#include "admin/sql/tables.h"

#include <utility>

#include "admin/audit_query.h"
#include "admin/policy_row.h"
#include "admin/sql/sql.h"
#include "admin/sql/statements.h"
#include "base/utf8.h"

namespace weir::policy::sql {
namespace {

/// Longer targets are truncated: they are for people, and must fit into an index.
constexpr std::size_t kMaxTargetBytes = 1000;

/// A row for each entry of a match, those of one policy together, or one row if it has none. What
/// ReadPolicy reads begins at column 1.
Result<Snapshot> ReadPolicies(RowsResult rows) {
  if (!rows.ok()) return rows.error();
  Snapshot snapshot;
  StoredPolicy* last = nullptr;
  for (Rows& row = **rows; row.Next();) {
    snapshot.changes = row.Int(0);
    const std::int64_t id = row.Int(1);
    if (id == 0) continue;
    if (last == nullptr || last->id != id) {
      Result<StoredPolicy> policy = ReadPolicy(row, 1);
      if (!policy.ok()) return policy.error();
      std::string key = policy->key;
      last = &snapshot.policies.insert_or_assign(std::move(key), std::move(*policy)).first->second;
    }
    std::string name = row.Text(18);
    if (!name.empty()) last->match.push_back(MakeEntryMatch(std::move(name), row.Text(19)));
  }
  return snapshot;
}

// The numbers given so far.
struct Counts {
  std::int64_t changes = 0;
  std::int64_t policies = 0;
  std::int64_t entries = 0;
};

Result<Counts> Lock(Session& session) {
  RowsResult rows = Run(session, kLockState);
  if (!rows.ok()) return rows.error();
  if (!(*rows)->Next()) {
    return Error{Code::kInternal, "weir_policy_state is empty; run weir migrate"};
  }
  return Counts{(*rows)->Int(0), (*rows)->Int(1), (*rows)->Int(2)};
}

Status WriteCounts(Session& session, const Counts& counts) {
  return Do(session, kWriteState, counts.changes, counts.policies, counts.entries);
}

Result<PolicyState> ReadState(Session& session, const std::string& key) {
  PolicyState state;
  Result<Snapshot> found = ReadPolicies(Run(session, kReadPolicy, std::string_view(key)));
  if (!found.ok()) return found.error();
  if (!found->policies.empty()) state.now = std::move(found->policies.begin()->second);
  Result<std::vector<PolicyChange>> last = ReadHistory(session, key, 1);
  if (!last.ok()) return last.error();
  if (!last->empty()) {
    state.new_version = VersionAfter(last->front());
    state.last_entry = last->front().id;
  }
  RowsResult rows = Run(session, kCountPolicies);
  if (!rows.ok()) return rows.error();
  if ((*rows)->Next()) state.policies = static_cast<std::size_t>((*rows)->Int(0));
  return state;
}

Status WriteMatch(Session& session, std::int64_t id, const std::vector<EntryMatch>& match) {
  if (Status gone = Do(session, kDeleteMatches, id); !gone.ok()) return gone;
  std::int64_t position = 0;
  for (const EntryMatch& entry : match) {
    const std::string value = MatchText(entry);
    Status written = Do(session, kInsertMatch, id, position++, std::string_view(entry.name),
                        std::string_view(value));
    if (!written.ok()) return written;
  }
  return {};
}

Status InsertPolicy(Session& session, const StoredPolicy& policy) {
  const std::string behaviour = BehaviourWords(policy);
  return Do(session, kInsertPolicy, PolicyTypeName(policy.type), policy.capacity,
            policy.refill_rate, policy.window_seconds, policy.buckets,
            std::string_view(policy.domain), std::int64_t{policy.has_match},
            std::int64_t{policy.shadow}, std::int64_t{policy.unlimited},
            std::string_view(behaviour), policy.cost, policy.version, policy.created_at,
            policy.updated_at, policy.expires_at, std::string_view(policy.key), policy.id);
}

/// Deletes the row and inserts it with all columns: few columns of few rows, and one statement less
/// to maintain.
Status WriteStep(Session& session, PolicyStep& step, Counts& counts) {
  if (step.after && step.after->id == 0) step.after->id = ++counts.policies;
  if (step.before) {
    Status gone = Do(session, kDeletePolicy, step.before->id);
    if (!gone.ok()) return gone;
  }
  if (!step.after) return WriteMatch(session, step.before->id, {});
  if (Status written = InsertPolicy(session, *step.after); !written.ok()) return written;
  return WriteMatch(session, step.after->id, step.after->match);
}

/// A key or the subject of a token may contain any bytes. The entry is written all the same:
/// otherwise such a name would keep an action out of the log.
Status WriteEntry(Session& session, const AuditEntry& entry, std::int64_t id) {
  const std::string who = StorableUtf8(entry.who, kMaxTargetBytes);
  const std::string target = StorableUtf8(entry.target, kMaxTargetBytes);
  return Do(session, kInsertEntry, id, entry.at, std::string_view(who),
            std::string_view(entry.action), std::string_view(target),
            std::string_view(entry.before), std::string_view(entry.after), entry.undoes);
}

Result<std::vector<AuditEntry>> TakeEntries(RowsResult rows) {
  if (!rows.ok()) return rows.error();
  std::vector<AuditEntry> entries;
  for (Rows& row = **rows; row.Next();) {
    entries.push_back({row.Int(0), row.Int(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5),
                       row.Text(6), row.Int(7)});
  }
  return entries;
}

}  // namespace

Result<std::int64_t> ReadChanges(Session& session) {
  RowsResult rows = Run(session, kReadChanges);
  if (!rows.ok()) return rows.error();
  if (!(*rows)->Next()) {
    return Error{Code::kInternal, "weir_policy_state is empty; run weir migrate"};
  }
  return (*rows)->Int(0);
}

Result<Snapshot> ReadAll(Session& session) { return ReadPolicies(session.RunLong(kReadPolicies)); }

Result<Made> Make(Session& session, const PolicyEdit& edit, const Catalog& catalog) {
  return InTransaction<Made>(session, [&]() -> Result<Made> {
    Result<Counts> counts = Lock(session);
    if (!counts.ok()) return counts.error();
    Result<PolicyState> state = ReadState(session, edit.key);
    if (!state.ok()) return state.error();
    const Nanos at = SystemClock::Get().Now();
    Result<PolicyStep> step = Decide(edit, *state, at, catalog);
    if (!step.ok()) return step.error();
    if (Status done = WriteStep(session, *step, *counts); !done.ok()) return done.error();
    const AuditEntry entry = EntryOf(edit, *step, at);
    if (Status done = WriteEntry(session, entry, ++counts->entries); !done.ok()) {
      return done.error();
    }
    ++counts->changes;
    if (Status done = WriteCounts(session, *counts); !done.ok()) return done.error();
    if (Status done = session.Announce(); !done.ok()) return done.error();
    return Made{counts->changes, std::move(*step)};
  });
}

Result<std::vector<PolicyChange>> ReadHistory(Session& session, const std::string& key,
                                              std::size_t limit) {
  const std::string target = std::string(kPolicyTarget) + key;
  const auto most = static_cast<std::int64_t>(limit);
  Result<std::vector<AuditEntry>> entries =
      TakeEntries(key.empty() ? Run(session, kReadHistory, most)
                              : Run(session, kReadHistoryOf, std::string_view(target), most));
  if (!entries.ok()) return entries.error();
  std::vector<PolicyChange> changes;
  changes.reserve(entries->size());
  for (AuditEntry& entry : *entries) changes.push_back(ChangeOf(std::move(entry)));
  return changes;
}

Result<std::int64_t> AppendEntry(Session& session, const AuditEntry& entry) {
  return InTransaction<std::int64_t>(session, [&]() -> Result<std::int64_t> {
    Result<Counts> counts = Lock(session);
    if (!counts.ok()) return counts.error();
    if (Status done = WriteEntry(session, entry, ++counts->entries); !done.ok()) {
      return done.error();
    }
    if (Status done = WriteCounts(session, *counts); !done.ok()) return done.error();
    return counts->entries;
  });
}

Result<std::vector<AuditEntry>> ReadEntries(Session& session, AuditQuery query) {
  query.target = StorableUtf8(query.target, kMaxTargetBytes);
  const AuditCondition condition = ConditionOf(query);
  std::vector<Value> values;
  values.reserve(condition.values.size());
  for (const auto& value : condition.values) {
    values.push_back(std::visit([](const auto& given) { return Value(given); }, value));
  }
  return TakeEntries(session.Run(std::string(kSelectEntries) + ' ' + condition.text, values));
}

Result<AuditEntry> ReadEntry(Session& session, std::int64_t id) {
  Result<std::vector<AuditEntry>> found = TakeEntries(Run(session, kReadEntry, id));
  if (!found.ok()) return found.error();
  if (found->empty()) return Error{Code::kNotFound, "no change with id " + std::to_string(id)};
  return std::move(found->front());
}

}  // namespace weir::policy::sql
