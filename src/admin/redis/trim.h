#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "admin/redis/session.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy::redis {

/// Deletes old entries of the audit log, as sql::Trimmer does.
///
/// Not thread-safe.
class Trimmer {
 public:
  /// See AuditLog::Trim.
  Result<std::size_t> Trim(Session& session, std::size_t keep, Nanos since, std::size_t most);

 private:
  /// Consecutive entries, oldest first, by target.
  struct Stretch {
    std::map<std::string, std::vector<std::int64_t>> old = {};
    std::int64_t last = 0;
    bool more = false;  ///< the entries after it may be old as well
  };

  Result<Stretch> OldOnes(Session& session, std::size_t keep, Nanos since, std::size_t most);
  static Result<std::size_t> Delete(Session& session, const std::string& target,
                                    const std::vector<std::int64_t>& ids);

  std::int64_t seen_ = 0;  // the last entry that was examined
};

}  // namespace weir::policy::redis
