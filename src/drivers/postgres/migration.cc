#include "drivers/postgres/migration.h"

#include <libpq-fe.h>

#include <cstddef>
#include <memory>

#include "base/blocking.h"
#include "base/number.h"
#include "drivers/postgres/sqlstate.h"
#include "drivers/postgres/survey.h"
#include "drivers/postgres/url.h"

namespace weir::postgres {
namespace {

using Handle = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Reply = std::unique_ptr<PGresult, decltype(&PQclear)>;

// Any number that no other program is likely to lock.
constexpr const char* kLock = "SELECT pg_advisory_xact_lock(1466264946)";

Error ErrorOf(PGconn* connection, PGresult* result) {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return {CodeOf(state == nullptr ? "" : state),
          "postgres: " + OneLine(PQerrorMessage(connection))};
}

Status Run(PGconn* connection, const char* sql) {
  const Reply answer(PQexec(connection, sql), &PQclear);
  const ExecStatusType status = PQresultStatus(answer.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  return ErrorOf(connection, answer.get());
}

Result<std::size_t> VersionOf(PGconn* connection, const std::string& component) {
  const char* values[] = {component.c_str()};
  const Reply answer(
      PQexecParams(connection,
                   "SELECT coalesce(max(version), 0) FROM weir_migrations WHERE component = $1", 1,
                   nullptr, values, nullptr, nullptr, 0),
      &PQclear);
  if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK) return ErrorOf(connection, answer.get());
  return ParseNumber<std::size_t>(PQgetvalue(answer.get(), 0, 0)).value_or(0);
}

Status Record(PGconn* connection, const std::string& component, std::size_t version) {
  const std::string number = std::to_string(version);
  const char* values[] = {component.c_str(), number.c_str()};
  const Reply answer(
      PQexecParams(connection,
                   "INSERT INTO weir_migrations(component, version) VALUES ($1, $2::int)", 2,
                   nullptr, values, nullptr, nullptr, 0),
      &PQclear);
  if (PQresultStatus(answer.get()) != PGRES_COMMAND_OK) return ErrorOf(connection, answer.get());
  return {};
}

// Runs the next step, if there is one. True: there may be more.
Result<bool> RunNext(PGconn* connection, const std::string& component,
                     std::span<const char* const> steps) {
  if (Status begun = Run(connection, "BEGIN"); !begun.ok()) return begun.error();
  if (Status locked = Run(connection, kLock); !locked.ok()) return locked.error();
  Status made = Run(connection,
                    "CREATE TABLE IF NOT EXISTS weir_migrations("
                    "component text, version int, at timestamptz NOT NULL DEFAULT now(), "
                    "PRIMARY KEY (component, version))");
  if (!made.ok()) return made.error();
  Result<std::size_t> version = VersionOf(connection, component);
  if (!version.ok()) return version.error();
  if (*version > steps.size()) {
    return Error{Code::kFailedPrecondition,
                 "postgres: the tables of '" + component +
                     "' were created by a newer version of weir; use that version"};
  }
  const bool is_current = *version == steps.size();
  if (!is_current) {
    if (Status ran = Run(connection, steps[*version]); !ran.ok()) return ran.error();
    if (Status kept = Record(connection, component, *version + 1); !kept.ok()) return kept.error();
  }
  if (Status committed = Run(connection, "COMMIT"); !committed.ok()) return committed.error();
  return !is_current;
}

}  // namespace

Status Migrate(const std::string& url, std::string_view component,
               std::span<const char* const> steps, std::chrono::seconds timeout) {
  const std::string seconds = std::to_string(timeout.count());
  Result<Target> target = Target::Parse(url);
  if (!target.ok()) return target.error();
  target->Set("connect_timeout", seconds);
  target->Set("options", "-c client_min_messages=warning");
  if (Status surveyed = Survey::Run(*target, std::chrono::milliseconds(timeout) / 2);
      !surveyed.ok())
    return surveyed;
  const Target::Words words = target->words();
  MayBlock("connecting to PostgreSQL, which resolves its host name");
  const Handle connection(PQconnectdbParams(words.names.data(), words.values.data(), 0), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) return ErrorOf(connection.get(), nullptr);
  // A user without the right to create tables does not need it if they exist.
  const Result<std::size_t> made = VersionOf(connection.get(), std::string(component));
  if (made.ok() && *made == steps.size()) return {};
  for (;;) {
    Result<bool> more = RunNext(connection.get(), std::string(component), steps);
    if (!more.ok()) return more.error();
    if (!*more) return {};
  }
}

Status TablesOnFirstUse::Ensure() {
  constexpr std::chrono::seconds kPause{1};
  if (made_) return {};
  if (std::chrono::steady_clock::now() < again_) return last_;
  last_ = Migrate(url_, component_, steps_, timeout_);
  made_ = last_.ok();
  again_ = std::chrono::steady_clock::now() + kPause;
  return last_;
}

}  // namespace weir::postgres
