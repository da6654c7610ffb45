#pragma once

#include <cstddef>
#include <cstdint>

#include "admin/sql/session.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy::sql {

/// Deletes old entries of the audit log, which is the history of the policies, too: of a policy
/// that there is, the latest kMaxVersions changes stay whatever their age. It looks at the log from
/// the oldest entry on, a stretch at each call, and starts again when it comes to entries that are
/// young.
///
/// Any number of nodes may do so at once: what one has deleted, the others do not find.
///
/// Not thread-safe.
class Trimmer {
 public:
  /// As AuditLog::Trim.
  Result<std::size_t> Trim(Session& session, std::size_t keep, Nanos since, std::size_t most);

 private:
  struct Stretch;
  Result<Stretch> Look(Session& session, std::int64_t oldest, Nanos since, std::size_t most) const;

  std::int64_t seen_ = 0;  // the entry that was looked at last
};

}  // namespace weir::policy::sql
