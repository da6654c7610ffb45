// Policies in Redis. A change reads the state, decides here by the rules of all stores, and
// writes the result if no other change was made meanwhile; otherwise it starts over. So changes
// follow each other wherever they are made, without a lock that would outlive a dead node.

#include "admin/shared/ledger.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/audit_query.h"
#include "admin/policy_edit.h"
#include "admin/redis/mark.h"
#include "admin/redis/policy_store.h"
#include "admin/redis/put_back.h"
#include "admin/redis/records.h"
#include "admin/redis/replies.h"
#include "admin/redis/scripts.h"
#include "admin/redis/session.h"
#include "admin/redis/trim.h"
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

constexpr std::size_t kMaxTargetBytes = 1000;  // longer ones are truncated, as in the SQL stores
/// Fields of a hash per call: the server must not be blocked for long.
constexpr std::int64_t kPage = 500;
/// How often a change is retried after conflicts. In each one, another node's change was made.
constexpr int kMaxAttempts = 100;

Error NotKnown(const Error& why) {
  return Error{
      Code::kDeadlineExceeded,
      "it is unknown whether the change was made; check before you repeat it: " + why.message};
}

AuditEntry WithShortTarget(AuditEntry entry) {
  entry.target = StorableUtf8(entry.target, kMaxTargetBytes);
  return entry;
}

/// The state on which a change is decided.
struct Look {
  std::int64_t changes = 0;
  std::string epoch = {};
  bool has_known = false;  ///< it includes what this node knows
  std::int64_t last_policy = 0;
  std::string last_entry = {};  ///< the record of the key's latest change
  PolicyState state = {};
};

/// All policies, and the changes that led to them.
struct Pages {
  Mark mark = {};
  Past past = {};
  PolicyMap policies = {};
};

Result<Past> PastIn(const std::vector<Reply>& fields) {
  Past past;
  for (std::size_t i = 1; i < fields.size(); i += 2) {
    const auto upto = ParseNumber<std::int64_t>(fields[i].text);
    if (!upto) return NotUnderstood();
    past.emplace(fields[i - 1].text, *upto);
  }
  return past;
}

/// Thread safety: see Ledger.
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
  Result<std::size_t> Trim(std::size_t keep, Nanos since, std::size_t most) override {
    return trimmer_.Trim(session_, keep, since, most);
  }
  std::string mark() const override { return known_.ToString(); }
  void Recall(const std::string& mark) override {
    known_ = Mark::Parse(mark);
    knows_ = recalled_ = true;
  }
  void Accept() override;
  bool lost() const noexcept override { return lost_; }
  Status Restore(const PolicyMap& policies) override;
  void Abort() noexcept override { session_.Abort(); }

 private:
  Result<std::vector<AuditEntry>> List(std::string_view ids, std::int64_t before,
                                       std::size_t limit);
  Result<Pages> ReadPages();
  Result<Look> LookAt(const std::string& key, const std::string& target);
  Result<std::int64_t> Write(const Look& look, const PolicyEdit& edit, const PolicyStep& step,
                             const AuditEntry& entry);
  void NoteMade(const Look& look, const std::string& epoch, std::int64_t changes);
  bool Lacks(bool has_known, std::int64_t changes) const;

  Session session_;
  Trimmer trimmer_;
  Mark known_;             // what was read last, and what was changed here
  Past past_;              // what known_ contains of earlier epochs
  Mark read_;              // not accepted yet
  Past read_past_;         // likewise
  bool knows_ = false;     // there is something that could be lost
  bool recalled_ = false;  // known from an earlier run, and not read since
  bool lost_ = false;
};

Result<std::int64_t> RedisLedger::ReadChanges() {
  Result<Reply> reply =
      session_.Read(CountScript(), {kState}, Command{known_.epoch}.Add(known_.changes));
  if (!reply.ok()) return reply.error();
  if (!reply->is_array(3)) return NotUnderstood();
  if (reply->elements[1].integer > kFormat) {
    return Error{Code::kFailedPrecondition,
                 "the policies in Redis were written by a newer version of weir"};
  }
  const std::int64_t changes = reply->elements[0].integer;
  lost_ = Lacks(reply->elements[2].integer == 1, changes);
  return changes;
}

/// What was known before a restart may not belong on this server: much may have been deleted since,
/// or the data folder may be a copy. It is restored only on a server that has nothing.
bool RedisLedger::Lacks(bool has_known, std::int64_t changes) const {
  return knows_ && !has_known && (!recalled_ || changes == 0);
}

// The count is that of before the first page. If there was a change meanwhile, the result may be a
// mixture, which the next check of the count detects. If policies were lost meanwhile, it is an
// error: what is left of them must not be taken for all of them.
Result<Pages> RedisLedger::ReadPages() {
  Pages read;
  std::string cursor = "0";
  bool first = true;
  do {
    Result<Reply> reply =
        session_.Read(PageScript(), {kState, kPolicies}, Command{cursor}.Add(kPage));
    if (!reply.ok()) return reply.error();
    if (!reply->is_array(5)) return NotUnderstood();
    const Mark now{reply->elements[3].text, reply->elements[0].integer};
    if (std::exchange(first, false)) {
      Result<Past> past = PastIn(reply->elements[4].elements);
      if (!past.ok()) return past.error();
      read.mark = now;
      read.past = std::move(*past);
    }
    const bool same = now.epoch == read.mark.epoch || read.mark.epoch.empty();
    if (!same || now.changes < read.mark.changes) {
      return Error{Code::kUnavailable, "redis: the server lost policies while they were read"};
    }
    cursor = reply->elements[1].text;
    const std::vector<Reply>& page = reply->elements[2].elements;
    for (std::size_t i = 1; i < page.size(); i += 2) {
      Result<StoredPolicy> policy = ReadPolicyRecord(page[i].text);
      if (!policy.ok()) return policy.error();
      std::string key = policy->key;
      read.policies.insert_or_assign(std::move(key), std::move(*policy));
    }
  } while (cursor != "0");
  return read;
}

Result<Snapshot> RedisLedger::ReadAll() {
  Result<Pages> read = ReadPages();
  if (!read.ok()) return read.error();
  read_ = std::move(read->mark);
  read_past_ = std::move(read->past);
  return Snapshot{read_.changes, std::move(read->policies)};
}

void RedisLedger::Accept() {
  known_ = read_;
  past_ = read_past_;
  knows_ = (knows_ && !recalled_) || known_.changes > 0;
  recalled_ = false;
}

Result<Look> RedisLedger::LookAt(const std::string& key, const std::string& target) {
  Result<Reply> reply =
      session_.Read(LookScript(), {kState, kPolicies, kEntries, TargetKey(target)},
                    Command{key}.Add(known_.epoch).Add(known_.changes));
  if (!reply.ok()) return reply.error();
  if (!reply->is_array(8)) return NotUnderstood();
  std::vector<Reply>& parts = reply->elements;
  Look look{.changes = parts[0].integer,
            .epoch = std::move(parts[6].text),
            .has_known = parts[7].integer == 1,
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

/// Returns the number of the change, or -1 if another one was made first.
Result<std::int64_t> RedisLedger::Write(const Look& look, const PolicyEdit& edit,
                                        const PolicyStep& step, const AuditEntry& entry) {
  const std::string epoch = look.epoch.empty() ? NewEpoch() : look.epoch;
  const std::string record = EntryRecord(entry);
  Command arguments;
  arguments.Add(look.changes).Add(edit.key);
  arguments.Add(step.after ? PolicyRecord(*step.after) : std::string());
  arguments.Add(std::max(look.last_policy, step.after ? step.after->id : 0)).Add(record);
  arguments.Add(look.epoch).Add(epoch);
  const Answer answer = session_.Call(
      MakeScript(), {kState, kPolicies, kEntries, kIds, kHistory, TargetKey(entry.target)},
      arguments);
  if (answer.status.ok()) {
    NoteMade(look, epoch, answer.reply.integer);
    return answer.reply.integer;
  }
  const Error& error = answer.status.error();
  if (!answer.sent || answer.reply.kind == Reply::Kind::kError) {
    return Error{error.code == Code::kDeadlineExceeded ? Code::kUnavailable : error.code,
                 error.message};
  }
  // The answer was lost. No one else writes the same entry: if it is there, the change was made.
  const Result<Look> now = LookAt(edit.key, entry.target);
  if (!now.ok() || now->last_entry != record) return NotKnown(error);
  NoteMade(look, epoch, look.changes + 1);
  return look.changes + 1;
}

/// A change directly after what this node knows is known as well. Before any other change there are
/// changes that it has not seen.
void RedisLedger::NoteMade(const Look& look, const std::string& epoch, std::int64_t changes) {
  if (look.epoch != known_.epoch || changes != known_.changes + 1) return;
  known_ = {epoch, changes};
  knows_ = true;
  recalled_ = false;
}

Result<Made> RedisLedger::Make(const PolicyEdit& edit, const Catalog& catalog) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Result<Look> look = LookAt(edit.key, std::string(kPolicyTarget) + edit.key);
    if (!look.ok()) return look.error();
    // This node must first restore what it knows.
    if (Lacks(look->has_known, look->changes)) {
      return Error{Code::kUnavailable, "redis: the server has lost policies; try again"};
    }
    const Nanos at = SystemClock::Get().Now();
    Result<PolicyStep> step = Decide(edit, look->state, at, catalog);
    if (!step.ok()) return step.error();
    if (step->after && step->after->id == 0) step->after->id = look->last_policy + 1;
    Result<std::int64_t> made =
        Write(*look, edit, *step, WithShortTarget(EntryOf(edit, *step, at)));
    if (!made.ok()) return made.error();
    if (*made > 0) return Made{*made, std::move(*step)};
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

// Leaves unchanged what others have changed since.
Status RedisLedger::Restore(const PolicyMap& policies) {
  const Result<Pages> there = ReadPages();
  if (!there.ok()) return there.error();
  return PutBack(session_, known_, past_, policies, there->policies);
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
