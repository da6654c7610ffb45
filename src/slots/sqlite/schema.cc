#include "slots/sqlite/schema.h"

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {

std::span<const char* const> Migrations() noexcept {
  static const char* const steps[] = {kTables, kStates, kArchiveTable, kFailures, kClaimNotesTable};
  return steps;
}

}  // namespace weir::slots::sqlite
