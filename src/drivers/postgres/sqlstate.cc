#include "drivers/postgres/sqlstate.h"

namespace weir::postgres {

Code CodeOf(std::string_view sqlstate) noexcept {
  const std::string_view kind = sqlstate.substr(0, 2);
  if (sqlstate == "23505") return Code::kAlreadyExists;
  if (kind == "23") return Code::kFailedPrecondition;
  if (sqlstate == "57014") return Code::kDeadlineExceeded;
  // No state at all: libpq's own words about a broken connection.
  if (sqlstate.empty() || kind == "08" || kind == "53" || kind == "57" || kind == "58" ||
      kind == "40" || kind == "55" || kind == "25") {
    return Code::kUnavailable;
  }
  if (kind == "28" || sqlstate == "42501") return Code::kPermissionDenied;
  return Code::kInternal;
}

bool IsRetryable(std::string_view sqlstate) noexcept {
  return sqlstate == "40001" || sqlstate == "40P01";
}

}  // namespace weir::postgres
