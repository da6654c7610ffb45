#include "admin/sqlite/implied_domain.h"

#include <utility>

#include "admin/sqlite/sql.h"
#include "telemetry/log.h"

namespace weir::policy::sqlite {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Result<std::string> ReadImpliedDomain(weir::sqlite::Database& database) {
  if (Status made = database.Migrate("implied_domain", {&kImpliedDomain1, 1}); !made.ok()) {
    return made.error();
  }
  std::string domain;
  Status read = database.Read([&](Connection& connection) -> Status {
    auto found = connection.ReadFirst(
        kReadImpliedDomain, [](const Statement& row) { return std::string(row.Text(0)); });
    if (!found.ok()) return found.error();
    domain = std::move(*found).value_or("");
    return {};
  });
  if (!read.ok()) return read.error();
  return domain;
}

void WriteImpliedDomain(weir::sqlite::Database& database, std::string domain) {
  database.Write(
      [domain = std::move(domain)](Connection& connection) {
        return connection.Run(kWriteImpliedDomain, domain);
      },
      [](const Status& written) {
        if (written.ok()) return;
        telemetry::Log(telemetry::Level::kWarn,
                       "cannot write the domain of requests that name none",
                       {{"error", std::string_view(written.error().message)}});
      });
}

}  // namespace weir::policy::sqlite
