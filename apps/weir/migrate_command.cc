// weir migrate: makes the tables of a SQL store, or brings them up to date, and says which.

#include <iostream>
#include <string>

#include "command.h"
#include "config/config.h"
#include "store/mariadb/schema.h"
#include "store/postgres/schema.h"

namespace weir::app {
namespace {

Status Migrate(const std::string& url) {
  const auto is = [&url](std::string_view scheme) { return url.starts_with(scheme); };
  if (is("postgres://") || is("postgresql://")) return store::postgres::Migrate(url);
  if (is("mysql://") || is("mariadb://")) return store::mariadb::Migrate(url);
  return Error{Code::kInvalidArgument,
               "--store: only postgres:// and mysql:// have tables; others need nothing"};
}

void Configure(CLI::App& word, int& exit_code) {
  auto* url = word.add_option("--store", "postgres://… or mysql://…: where limits are kept")
                  ->required()
                  ->envname("WEIR_STORE");
  word.footer(
      "Safe to repeat, and to run on several nodes at once. Needs the right to create tables, "
      "which "
      "`weir serve` then does not (store_migrate: false).");
  word.callback([url, &exit_code] {
    const auto store = url->as<std::string>();
    const Status migrated = Migrate(store);
    if (!migrated.ok()) {
      std::cerr << "weir: " << migrated.error().message << '\n';
      exit_code = 1;
      return;
    }
    std::cout << "limits: up to date in " << config::WithoutSecrets(store) << '\n';
  });
}

const Command kMigrate("migrate", "Make or update the tables of a SQL store.", Configure);

}  // namespace
}  // namespace weir::app
