#include "admin/sql/trim.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "admin/policy_store.h"
#include "admin/sql/sql.h"
#include "admin/sql/statements.h"

namespace weir::policy::sql {
namespace {

/// Reads of one call, so that it is short however many entries must stay.
constexpr int kMaxLooks = 20;

/// IDs per statement. Always the same number, since servers cache the text of each statement.
constexpr std::size_t kIds = 50;

/// The oldest ID among the latest `keep`; 0: all are.
Result<std::int64_t> OldestToKeep(Session& session, std::size_t keep) {
  if (keep == 0) return std::int64_t{0};
  RowsResult rows = Run(session, kReadLastEntry);
  if (!rows.ok()) return rows.error();
  if (!(*rows)->Next()) return std::int64_t{0};
  return std::max<std::int64_t>((*rows)->Int(0) - static_cast<std::int64_t>(keep) + 1, 0);
}

Status Delete(Session& session, std::span<const std::int64_t> ids) {
  std::string sql = "DELETE FROM weir_audit WHERE id IN (?";
  for (std::size_t i = 1; i < kIds; ++i) sql += ", ?";
  sql += ")";
  const Result<bool> done = InTransaction<bool>(session, [&]() -> Result<bool> {
    for (; !ids.empty(); ids = ids.subspan(std::min(kIds, ids.size()))) {
      std::vector<Value> values(kIds, ids.front());
      std::copy_n(ids.begin(), std::min(kIds, ids.size()), values.begin());
      RowsResult rows = session.Run(sql, values);
      if (!rows.ok()) return rows.error();
    }
    return true;
  });
  if (!done.ok()) return done.error();
  return {};
}

}  // namespace

/// Some consecutive entries.
struct Trimmer::Stretch {
  std::vector<std::int64_t> to_delete = {};
  std::int64_t last = 0;
  bool more = false;  ///< the entries after it may be old as well
};

Result<Trimmer::Stretch> Trimmer::Look(Session& session, std::int64_t oldest, Nanos since,
                                       std::size_t most) const {
  // The third column is the policy's ID if it exists, the fourth the first later change of it that
  // makes this one too many, if there is one.
  static const std::string kLook =
      "SELECT a.id, a.at, p.id, (SELECT b.id FROM weir_audit b WHERE b.target = a.target AND"
      " b.id > a.id ORDER BY b.id LIMIT 1 OFFSET " +
      std::to_string(kMaxVersions - 1) +
      ") FROM weir_audit a LEFT JOIN weir_policy p ON a.target LIKE 'policy:%' AND"
      " p.policy_key = SUBSTRING(a.target FROM 8) WHERE a.id > ? ORDER BY a.id LIMIT ?";
  RowsResult rows = Run(session, kLook, seen_, static_cast<std::int64_t>(most));
  if (!rows.ok()) return rows.error();
  Stretch stretch;
  std::size_t seen = 0;
  for (Rows& row = **rows; row.Next(); ++seen) {
    const bool is_old = row.Int(1) < since || row.Int(0) < oldest;
    if (!is_old) return stretch;
    stretch.last = row.Int(0);
    const bool is_history = row.Int(2) != 0 && row.Int(3) == 0;
    if (!is_history) stretch.to_delete.push_back(stretch.last);
  }
  stretch.more = seen == most;
  return stretch;
}

Result<std::size_t> Trimmer::Trim(Session& session, std::size_t keep, Nanos since,
                                  std::size_t most) {
  const Result<std::int64_t> oldest = OldestToKeep(session, keep);
  if (!oldest.ok()) return oldest.error();
  std::size_t deleted = 0;
  for (int looks = 0; looks < kMaxLooks && deleted < most; ++looks) {
    const Result<Stretch> stretch = Look(session, *oldest, since, most - deleted);
    if (!stretch.ok()) return stretch.error();
    if (Status gone = Delete(session, stretch->to_delete); !gone.ok()) return gone.error();
    deleted += stretch->to_delete.size();
    seen_ = stretch->more ? stretch->last : 0;
    if (!stretch->more) break;
  }
  return deleted;
}

}  // namespace weir::policy::sql
