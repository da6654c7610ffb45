#pragma once

#include <span>

namespace weir::slots::sqlite {

/// The steps that make the tables of slots, for weir::sqlite::Database::Migrate. The same tables
/// and invariants as in PostgreSQL (../postgres/sql/tables.sql).
std::span<const char* const> Migrations() noexcept;

}  // namespace weir::slots::sqlite
