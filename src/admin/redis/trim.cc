#include "admin/redis/trim.h"

#include "admin/audit_log.h"
#include "admin/policy_edit.h"
#include "admin/redis/replies.h"
#include "admin/redis/scripts.h"

namespace weir::policy::redis {
namespace {

using weir::redis::Answer;
using weir::redis::Command;
using weir::redis::Reply;

/// Reads of one Trim, so that it is short however many entries must stay.
constexpr int kMaxLooks = 20;

}  // namespace

Result<Trimmer::Stretch> Trimmer::OldOnes(Session& session, std::size_t keep, Nanos since,
                                          std::size_t most) {
  Result<Reply> reply = session.Read(OldestScript(), {kState, kIds, kEntries},
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

Result<std::size_t> Trimmer::Delete(Session& session, const std::string& target,
                                    const std::vector<std::int64_t>& ids) {
  const bool policy = target.starts_with(kPolicyTarget);
  Command arguments{policy ? std::string_view(target).substr(kPolicyTarget.size())
                           : std::string_view()};
  arguments.Add(static_cast<std::int64_t>(kMaxVersions));
  for (const std::int64_t id : ids) arguments.Add(id);
  const Answer answer = session.Call(
      TrimScript(), {kPolicies, kEntries, kIds, kHistory, TargetKey(target)}, arguments);
  if (!answer.status.ok()) return answer.status.error();
  return static_cast<std::size_t>(answer.reply.integer);
}

Result<std::size_t> Trimmer::Trim(Session& session, std::size_t keep, Nanos since,
                                  std::size_t most) {
  std::size_t deleted = 0;
  for (int looks = 0; looks < kMaxLooks && deleted < most; ++looks) {
    Result<Stretch> stretch = OldOnes(session, keep, since, most - deleted);
    if (!stretch.ok()) return stretch.error();
    for (const auto& [target, ids] : stretch->old) {
      const Result<std::size_t> gone = Delete(session, target, ids);
      if (!gone.ok()) return gone.error();
      deleted += *gone;
    }
    seen_ = stretch->more ? stretch->last : 0;
    if (!stretch->more) break;
  }
  return deleted;
}

}  // namespace weir::policy::redis
