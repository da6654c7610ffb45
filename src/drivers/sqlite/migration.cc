#include "drivers/sqlite/migration.h"

#include <cstdint>
#include <string>

#include "drivers/sqlite/connection.h"

namespace weir::sqlite {
namespace {

Status ApplyStep(Connection& connection, std::string_view component, std::int64_t version,
                 const char* sql) {
  if (Status done = connection.Execute(sql); !done.ok()) return done;
  return connection.Run(
      "INSERT INTO schema_version (component, version) VALUES (?1, ?2)"
      " ON CONFLICT (component) DO UPDATE SET version = excluded.version",
      component, version);
}

}  // namespace

Status Migrate(Connection& connection, std::string_view component,
               std::span<const char* const> steps) {
  if (Status made = connection.Execute("CREATE TABLE IF NOT EXISTS schema_version ("
                                       "component TEXT PRIMARY KEY, version INTEGER NOT NULL)");
      !made.ok()) {
    return made;
  }
  const auto newest = static_cast<std::int64_t>(steps.size());
  for (;;) {
    // The version is read under the write lock: two programs may start on one file together.
    if (Status begun = connection.Execute("BEGIN IMMEDIATE"); !begun.ok()) return begun;
    const Result<std::int64_t> version =
        connection.ReadNumber("SELECT version FROM schema_version WHERE component = ?1", component);
    Status step;
    if (!version.ok()) {
      step = version.error();
    } else if (*version > newest) {
      step = Error{Code::kInvalidArgument,  // a retry cannot help
                   "the data of '" + std::string(component) + "' has version " +
                       std::to_string(*version) + ", but this program knows only " +
                       std::to_string(newest) + ": it was written by a newer version of weir"};
    } else if (*version < newest) {
      step =
          ApplyStep(connection, component, *version + 1, steps[static_cast<std::size_t>(*version)]);
    }
    if (step.ok()) step = connection.Execute("COMMIT");
    if (!step.ok()) {
      // The transaction may have ended already; the first error is the one that matters.
      if (!connection.autocommit()) static_cast<void>(connection.Execute("ROLLBACK"));
      return step;
    }
    if (*version == newest) return {};
  }
}

}  // namespace weir::sqlite
