#pragma once

#include <span>

namespace weir::slots::postgres {

/// The steps that make the tables and functions of slots, for weir::postgres::Migrate.
std::span<const char* const> Migrations() noexcept;

/// The texts of the steps, in order.
extern const char* const kTables;
extern const char* const kPlacing;
extern const char* const kAssigning;
extern const char* const kConfiguring;
extern const char* const kStates;
extern const char* const kMoving;
extern const char* const kExecuting;
extern const char* const kConfiguringStates;

}  // namespace weir::slots::postgres
