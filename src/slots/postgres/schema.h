#pragma once

#include <span>

namespace weir::slots::postgres {

/// The steps that make the tables and functions of slots, for weir::postgres::Migrate.
std::span<const char* const> Migrations() noexcept;

/// The texts of the steps, in order: files of sql/, which say how they work.
extern const char* const kTables;
extern const char* const kPlacing;
extern const char* const kAssigning;
extern const char* const kConfiguring;
extern const char* const kStates;
extern const char* const kMoving;
extern const char* const kExecuting;
extern const char* const kConfiguringStates;
extern const char* const kPlacingOpen;
extern const char* const kArchive;
extern const char* const kOpenTimes;
extern const char* const kFailures;
extern const char* const kClaimNotes;
extern const char* const kGranting;
extern const char* const kLapsing;
extern const char* const kComparing;
extern const char* const kRestored;

}  // namespace weir::slots::postgres
