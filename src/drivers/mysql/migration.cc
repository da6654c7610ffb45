#include "drivers/mysql/migration.h"

#include <cstddef>

#include "drivers/mysql/connection.h"

namespace weir::mysql {
namespace {

constexpr const char* kPrepare = R"(
CREATE TABLE IF NOT EXISTS weir_migrations(
  component VARCHAR(64) NOT NULL, version INT NOT NULL,
  at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (component, version)))";

Result<std::size_t> VersionOf(Connection& connection, const std::string& component) {
  Answer answer =
      connection.Run("SELECT COALESCE(MAX(version), 0) FROM weir_migrations WHERE component = '" +
                     component + "'");
  if (!answer.status.ok()) return answer.status.error();
  if (!answer.results.at(0).Next()) return Error{Code::kInternal, "mysql: no version"};
  return static_cast<std::size_t>(answer.results[0].Int(0));
}

Error TooNew(const std::string& component) {
  return {Code::kFailedPrecondition,
          "mysql: the tables of '" + component +
              "' were created by a newer version of weir; use that version"};
}

}  // namespace

Status Migrate(const std::string& url, std::string_view component,
               std::span<const char* const> steps) {
  ConnectionOptions options;
  options.url = url;
  options.statement_timeout = std::chrono::seconds(30);
  options.limits = {.lock_wait = std::chrono::seconds(25),
                    .statement = std::chrono::seconds(25),
                    .idle_transaction = std::chrono::seconds(30)};
  Connection connection(options);
  const std::string name(component);
  // A user without the right to create tables does not need it if they exist.
  if (const Result<std::size_t> made = VersionOf(connection, name); made.ok()) {
    if (*made == steps.size()) return {};
  } else if (made.error().code == Code::kUnavailable) {
    return made.error();
  }
  // Held until the connection ends.
  // MySQL takes names of 64 characters at most.
  Answer locked = connection.Run(
      "SELECT GET_LOCK(CONCAT('weir_migrations.', IF(CHAR_LENGTH(DATABASE()) > 48, "
      "LEFT(SHA2(DATABASE(), 256), 48), DATABASE())), 20)");
  if (!locked.status.ok()) return locked.status;
  if (!locked.results.at(0).Next() || locked.results[0].Int(0) != 1) {
    return Error{Code::kUnavailable, "mysql: another process is changing the tables; try again"};
  }
  if (Answer made = connection.Run(kPrepare); !made.status.ok()) return made.status;
  Result<std::size_t> version = VersionOf(connection, name);
  if (!version.ok()) return version.error();
  if (*version > steps.size()) return TooNew(name);
  for (std::size_t step = *version; step < steps.size(); ++step) {
    if (Answer ran = connection.Run(steps[step]); !ran.status.ok()) return ran.status;
    Answer kept = connection.Run("INSERT INTO weir_migrations(component, version) VALUES ('" +
                                 name + "', " + std::to_string(step + 1) + ")");
    if (!kept.status.ok()) return kept.status;
  }
  return {};
}

}  // namespace weir::mysql
