#include "notify/sqlite/schema.h"

#include "notify/sqlite/sql.h"

namespace weir::notify::sqlite {

std::span<const char* const> Migrations() noexcept {
  static const char* const steps[] = {kTables, kStates};
  return steps;
}

}  // namespace weir::notify::sqlite
