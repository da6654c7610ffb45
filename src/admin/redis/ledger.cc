// Policies in Redis. A change reads the state, decides here by the rules that all stores have, and
// writes what it came to if no other change was made meanwhile; else it begins again. So changes
// follow each other wherever they are made, without a lock that a node could die with.

#include "admin/shared/ledger.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/audit_query.h"
#include "admin/policy_edit.h"
#include "admin/redis/policy_store.h"
#include "admin/redis/records.h"
#include "admin/redis/scripts.h"
#include "admin/redis/session.h"
#include "base/number.h"
#include "base/utf8.h"
#include "weir/clock.h"

namespace weir::policy::redis {
namespace {

using shared::Made;
using shared::Snapshot;
using weir::redis::Answer;
using weir::redis::Command;
using weir::redis::Reply;

constexpr std::size_t kMaxTargetBytes = 1000;  // longer ones are cut, as in the SQL stores
/// Of a hash at each look: the server must not stand still for long.
constexpr std::int64_t kPage = 500;
/// How often a change begins again because of others. Each time another node's change was made.
constexpr int kMaxAttempts = 100;
/// How far the count goes on when policies are put back: beyond what any node has seen.
constexpr std::int64_t kLeap = 1000;
/// Looks of one Trim, so that it is short however many entries have to stay.
constexpr int kMaxLooks = 20;

Error NotUnderstood() {
  return Error{Code::kInternal, "redis: unexpected response about policies"};
}

Error NotKnown(const Error& why) {
  return Error{
      Code::kDeadlineExceeded,
      "it is unknown whether the change was made; check before you repeat it: " + why.message};
}

std::int64_t NumberIn(const Reply& reply) {
  if (reply.kind != Reply::Kind::kText) return reply.integer;
  return ParseNumber<std::int64_t>(reply.text).value_or(reply.integer);
}

/// [id, record, …]
Result<std::vector<AuditEntry>> EntriesIn(const Reply& list) {
  std::vector<AuditEntry> entries;
  entries.reserve(list.elements.size() / 2);
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
    Result<AuditEntry> entry =
        ReadEntryRecord(NumberIn(list.elements[i]), list.elements[i + 1].text);
    if (!entry.ok()) return entry.error();
    entries.push_back(std::move(*entry));
  }
  return entries;
}

AuditEntry WithShortTarget(AuditEntry entry) {
  entry.target = StorableUtf8(entry.target, kMaxTargetBytes);
  return entry;
}

/// What a change is decided on.
struct Look {
  std::int64_t changes = 0;
  std::int64_t last_policy = 0;
  std::string last_entry = {};  ///< the record of the key's latest change
  PolicyState state = {};
};

/// Thread safety: as every Ledger.
class RedisLedger final : public shared::Ledger {
 public:
  RedisLedger(const weir::redis::Address& address, std::chrono::milliseconds patience)
      : session_(address, patience) {}

  Status Migrate() override { return {}; }
  Result<std::int64_t> ReadChanges() override;
  Result<Snapshot> ReadAll() override;
  Result<Made> Make(const PolicyEdit& edit, const Catalog& catalog) override;
  Result<std::vector<PolicyChange>> ReadHistory(const std::string& key, std::size_t limit) override;
  Result<std::int64_t> AppendEntry(const AuditEntry& entry) override;
  Result<std::vector<AuditEntry>> ReadEntries(const AuditQuery& query) override;
  Result<AuditEntry> ReadEntry(std::int64_t id) override;
  Result<std::size_t> Trim(std::size_t keep, Nanos since, std::size_t most) override;
  bool forgets() const noexcept override { return true; }
  Status Restore(const PolicyMap& policies, std::int64_t changes) override;
  void Abort() noexcept override { session_.Abort(); }

 private:
  /// Entries that follow each other, oldest first, by their targets.
  struct Stretch {
    std::map<std::string, std::vector<std::int64_t>> old = {};
    std::int64_t last = 0;
    bool more = false;  ///< the entries behind it may be old as well
  };

  Result<std::vector<AuditEntry>> List(std::string_view ids, std::int64_t before,
                                       std::size_t limit);
  Result<Look> LookAt(const std::string& key, const std::string& target);
  Result<std::int64_t> Write(const Look& look, const PolicyEdit& edit, const PolicyStep& step,
                             const AuditEntry& entry);
  Result<Stretch> OldOnes(std::size_t keep, Nanos since, std::size_t most);
  Result<std::size_t> Delete(const std::string& target, const std::vector<std::int64_t>& ids);

  Session session_;
  std::int64_t known_ = 0;  // how many changes those were that were read last, or made here
  std::int64_t seen_ = 0;   // the entry that Trim looked at last
};

Result<std::int64_t> RedisLedger::ReadChanges() {
  Result<Reply> reply = session_.Read(CountScript(), {kState}, {});
  if (!reply.ok()) return reply.error();
  if (!reply->is_array(2)) return NotUnderstood();
  if (reply->elements[1].integer > kFormat) {
    return Error{Code::kFailedPrecondition,
                 "the policies in Redis were written by a newer version of weir"};
  }
  return reply->elements[0].integer;
}

// The count is of before the first page. If there was a change meanwhile, what was read may be a
// mixture, and the next look at the count sees that.
Result<Snapshot> RedisLedger::ReadAll() {
  Snapshot snapshot;
  std::string cursor = "0";
  bool first = true;
  do {
    Result<Reply> reply =
        session_.Read(PageScript(), {kState, kPolicies}, Command{cursor}.Add(kPage));
    if (!reply.ok()) return reply.error();
    if (!reply->is_array(3)) return NotUnderstood();
    if (std::exchange(first, false)) snapshot.changes = reply->elements[0].integer;
    cursor = reply->elements[1].text;
    const std::vector<Reply>& page = reply->elements[2].elements;
    for (std::size_t i = 1; i < page.size(); i += 2) {
      Result<StoredPolicy> policy = ReadPolicyRecord(page[i].text);
      if (!policy.ok()) return policy.error();
      std::string key = policy->key;
      snapshot.policies.insert_or_assign(std::move(key), std::move(*policy));
    }
  } while (cursor != "0");
  known_ = snapshot.changes;
  return snapshot;
}

Result<Look> RedisLedger::LookAt(const std::string& key, const std::string& target) {
  Result<Reply> reply =
      session_.Read(LookScript(), {kState, kPolicies, kEntries, TargetKey(target)}, Command{key});
  if (!reply.ok()) return reply.error();
  if (!reply->is_array(6)) return NotUnderstood();
  std::vector<Reply>& parts = reply->elements;
  Look look{.changes = parts[0].integer,
            .last_policy = parts[1].integer,
            .last_entry = std::move(parts[5].text)};
  look.state.policies = static_cast<std::size_t>(parts[3].integer);
  if (!parts[2].text.empty()) {
    Result<StoredPolicy> policy = ReadPolicyRecord(parts[2].text);
    if (!policy.ok()) return policy.error();
    look.state.now = std::move(*policy);
  }
  if (look.last_entry.empty()) return look;
  Result<AuditEntry> last = ReadEntryRecord(parts[4].integer, look.last_entry);
  if (!last.ok()) return last.error();
  look.state.last_entry = last->id;
  look.state.new_version = VersionAfter(ChangeOf(std::move(*last)));
  return look;
}

/// Answers the number of the change, or -1 if others came between.
Result<std::int64_t> RedisLedger::Write(const Look& look, const PolicyEdit& edit,
                                        const PolicyStep& step, const AuditEntry& entry) {
  const std::string record = EntryRecord(entry);
  Command arguments;
  arguments.Add(look.changes).Add(edit.key);
  arguments.Add(step.after ? PolicyRecord(*step.after) : std::string());
  arguments.Add(std::max(look.last_policy, step.after ? step.after->id : 0)).Add(record);
  const Answer answer = session_.Call(
      MakeScript(), {kState, kPolicies, kEntries, kIds, kHistory, TargetKey(entry.target)},
      arguments);
  if (answer.status.ok()) return answer.reply.integer;
  const Error& error = answer.status.error();
  if (!answer.sent || answer.reply.kind == Reply::Kind::kError) {
    return Error{error.code == Code::kDeadlineExceeded ? Code::kUnavailable : error.code,
                 error.message};
  }
  // The answer was lost. Nobody else writes the same entry: if it is there, it was made.
  const Result<Look> now = LookAt(edit.key, entry.target);
  if (now.ok() && now->last_entry == record) return look.changes + 1;
  return NotKnown(error);
}

Result<Made> RedisLedger::Make(const PolicyEdit& edit, const Catalog& catalog) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Result<Look> look = LookAt(edit.key, std::string(kPolicyTarget) + edit.key);
    if (!look.ok()) return look.error();
    // A change now would be the first of an empty store, and all nodes would take it for all of it.
    if (look->changes < known_) {
      return Error{Code::kUnavailable, "redis: the server has lost policies; try again"};
    }
    const Nanos at = SystemClock::Get().Now();
    Result<PolicyStep> step = Decide(edit, look->state, at, catalog);
    if (!step.ok()) return step.error();
    if (step->after && step->after->id == 0) step->after->id = look->last_policy + 1;
    Result<std::int64_t> made =
        Write(*look, edit, *step, WithShortTarget(EntryOf(edit, *step, at)));
    if (!made.ok()) return made.error();
    if (*made > 0) return Made{known_ = *made, std::move(*step)};
  }
  return Error{Code::kUnavailable, "too many policy changes at once; try again"};
}

Result<std::vector<AuditEntry>> RedisLedger::List(std::string_view ids, std::int64_t before,
                                                  std::size_t limit) {
  Result<Reply> reply = session_.Read(ListScript(), {ids, kEntries},
                                      Command{}.Add(before).Add(static_cast<std::int64_t>(limit)));
  if (!reply.ok()) return reply.error();
  return EntriesIn(*reply);
}

Result<std::vector<AuditEntry>> RedisLedger::ReadEntries(const AuditQuery& query) {
  std::string ids(kIds);
  if (!query.target.empty()) ids = TargetKey(StorableUtf8(query.target, kMaxTargetBytes));
  return SelectActions(query, [&](auto before, auto limit) { return List(ids, before, limit); });
}

Result<std::vector<PolicyChange>> RedisLedger::ReadHistory(const std::string& key,
                                                           std::size_t limit) {
  const std::string of = TargetKey(std::string(kPolicyTarget) + key);
  Result<std::vector<AuditEntry>> entries = List(key.empty() ? kHistory : of, 0, limit);
  if (!entries.ok()) return entries.error();
  std::vector<PolicyChange> changes;
  changes.reserve(entries->size());
  for (AuditEntry& entry : *entries) changes.push_back(ChangeOf(std::move(entry)));
  return changes;
}

Result<std::int64_t> RedisLedger::AppendEntry(const AuditEntry& entry) {
  const AuditEntry kept = WithShortTarget(entry);
  Command arguments{EntryRecord(kept)};
  arguments.Add(kept.target.starts_with(kPolicyTarget) ? "1" : "0");
  const Answer answer = session_.Call(
      AppendScript(), {kState, kEntries, kIds, kHistory, TargetKey(kept.target)}, arguments);
  if (answer.status.ok()) return answer.reply.integer;
  const bool maybe = answer.sent && answer.reply.kind != Reply::Kind::kError;
  return maybe ? NotKnown(answer.status.error()) : answer.status.error();
}

Result<AuditEntry> RedisLedger::ReadEntry(std::int64_t id) {
  Result<Reply> reply = session_.Read(FindScript(), {kEntries}, Command{}.Add(id));
  if (!reply.ok()) return reply.error();
  if (reply->text.empty()) return Error{Code::kNotFound, "no change with id " + std::to_string(id)};
  return ReadEntryRecord(id, reply->text);
}

Result<RedisLedger::Stretch> RedisLedger::OldOnes(std::size_t keep, Nanos since, std::size_t most) {
  Result<Reply> reply = session_.Read(OldestScript(), {kState, kIds, kEntries},
                                      Command{}.Add(seen_).Add(static_cast<std::int64_t>(most)));
  if (!reply.ok()) return reply.error();
  if (!reply->is_array(2)) return NotUnderstood();
  const Result<std::vector<AuditEntry>> entries = EntriesIn(reply->elements[1]);
  if (!entries.ok()) return entries.error();
  // Entries are numbered without gaps.
  const std::int64_t oldest =
      keep == 0 ? 0 : reply->elements[0].integer - static_cast<std::int64_t>(keep) + 1;
  Stretch stretch;
  for (const AuditEntry& entry : *entries) {
    if (entry.at >= since && entry.id >= oldest) return stretch;
    stretch.last = entry.id;
    stretch.old[entry.target].push_back(entry.id);
  }
  stretch.more = entries->size() == most;
  return stretch;
}

Result<std::size_t> RedisLedger::Delete(const std::string& target,
                                        const std::vector<std::int64_t>& ids) {
  const bool policy = target.starts_with(kPolicyTarget);
  Command arguments{policy ? std::string_view(target).substr(kPolicyTarget.size())
                           : std::string_view()};
  arguments.Add(static_cast<std::int64_t>(kMaxVersions));
  for (const std::int64_t id : ids) arguments.Add(id);
  const Answer answer = session_.Call(
      TrimScript(), {kPolicies, kEntries, kIds, kHistory, TargetKey(target)}, arguments);
  if (!answer.status.ok()) return answer.status.error();
  return static_cast<std::size_t>(answer.reply.integer);
}

Result<std::size_t> RedisLedger::Trim(std::size_t keep, Nanos since, std::size_t most) {
  std::size_t deleted = 0;
  for (int looks = 0; looks < kMaxLooks && deleted < most; ++looks) {
    Result<Stretch> stretch = OldOnes(keep, since, most - deleted);
    if (!stretch.ok()) return stretch.error();
    for (const auto& [target, ids] : stretch->old) {
      const Result<std::size_t> gone = Delete(target, ids);
      if (!gone.ok()) return gone.error();
      deleted += *gone;
    }
    seen_ = stretch->more ? stretch->last : 0;
    if (!stretch->more) break;
  }
  return deleted;
}

Status RedisLedger::Restore(const PolicyMap& policies, std::int64_t changes) {
  std::int64_t last_policy = 0;
  Command page;
  const auto put = [&]() -> Status {
    const Answer answer = session_.Call(PutBackScript(), {kState, kPolicies}, page);
    page = Command();
    return answer.status;
  };
  for (const auto& [key, policy] : policies) {
    last_policy = std::max(last_policy, policy.id);
    page.Add(key).Add(PolicyRecord(policy));
    if (page.count() < static_cast<std::size_t>(2 * kPage)) continue;
    if (Status done = put(); !done.ok()) return done;
  }
  if (page.count() > 0) {
    if (Status done = put(); !done.ok()) return done;
  }
  return session_.Call(FinishScript(), {kState}, Command{}.Add(changes + kLeap).Add(last_policy))
      .status;
}

}  // namespace

Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options) {
  const auto address = weir::redis::ParseUrl(url);
  if (!address.ok()) return address.error();
  auto ledger = std::make_unique<RedisLedger>(*address, options.patience);
  return shared::SharedPolicyStore::Open(std::move(ledger), catalog, std::move(options));
}

}  // namespace weir::policy::redis
