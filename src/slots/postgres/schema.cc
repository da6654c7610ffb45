#include "slots/postgres/schema.h"

namespace weir::slots::postgres {

std::span<const char* const> Migrations() noexcept {
  static const char* const steps[] = {
      kTables,     kPlacing,           kAssigning,   kConfiguring, kStates,    kMoving,
      kExecuting,  kConfiguringStates, kPlacingOpen, kArchive,     kOpenTimes, kFailures,
      kClaimNotes, kGranting,          kLapsing,     kComparing,   kRestored};
  return steps;
}

}  // namespace weir::slots::postgres
