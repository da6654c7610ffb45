#include "notify/postgres/schema.h"

namespace weir::notify::postgres {

std::span<const char* const> Migrations() noexcept {
  static const char* const steps[] = {kTables, kStates, kSenders};
  return steps;
}

}  // namespace weir::notify::postgres
