#pragma once

#include <cstddef>
#include <cstdint>

#include "admin/sql/session.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy::sql {

/// Deletes old entries of the audit log, which is also the history of the policies: of an existing
/// policy, the latest kMaxVersions changes stay whatever their age. It examines the log from the
/// oldest entry on, a part at each call, and starts again when it reaches entries that are too
/// young.
///
/// Any number of nodes may do so at the same time: no node finds what another has deleted.
///
/// Not thread-safe.
class Trimmer {
 public:
  /// See AuditLog::Trim.
  Result<std::size_t> Trim(Session& session, std::size_t keep, Nanos since, std::size_t most);

 private:
  struct Stretch;
  Result<Stretch> Look(Session& session, std::int64_t oldest, Nanos since, std::size_t most) const;

  std::int64_t seen_ = 0;  // the last entry that was examined
};

}  // namespace weir::policy::sql
