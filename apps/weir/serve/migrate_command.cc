// weir migrate: makes the tables of SQL stores, or brings them up to date, and says which.

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "command.h"
#include "config/config.h"
#include "drivers/mysql/channel.h"
#include "drivers/postgres/migration.h"
#include "notify/postgres/schema.h"
#include "serve/policies.h"
#include "slots/postgres/schema.h"
#include "store/mysql/schema.h"
#include "store/postgres/schema.h"

namespace weir::app::migrate_command {
namespace {

bool IsPostgres(const std::string& url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

bool IsMysql(const std::string& url) {
  return url.starts_with("mysql://") || url.starts_with("mariadb://");
}

/// The tables of one part of the service in one database.
struct Tables {
  const char* name;
  std::string url;
  std::function<Status(const std::string& url)> migrate;
};

Status OnlyPostgres(const std::string& flag) {
  return Error{Code::kInvalidArgument, flag + ": only postgres:// has tables to make"};
}

std::vector<Tables> OfStore(const std::string& url) {
  if (IsPostgres(url)) {
    return {{"limits", url, store::postgres::Migrate}, {"policies", url, MigratePolicies}};
  }
  if (IsMysql(url)) {
    return {{"limits", url, store::mysql::Migrate},
            {"messages", url, mysql::MigrateChannel},
            {"policies", url, MigratePolicies}};
  }
  return {{"limits", url, [](const std::string&) -> Status {
             return Error{
                 Code::kInvalidArgument,
                 "--store: only postgres:// and mysql:// have tables; others need nothing"};
           }}};
}

Tables OfPostgres(const char* name, const std::string& flag, const std::string& url,
                  std::span<const char* const> steps) {
  return {name, url, [=](const std::string& at) {
            return IsPostgres(at) ? postgres::Migrate(at, name, steps) : OnlyPostgres(flag);
          }};
}

int Migrate(const std::vector<Tables>& all) {
  if (all.empty()) {
    std::cerr << "weir: say which tables: --store, --policy-store, --slots-store, --notify-store\n";
    return 2;
  }
  for (const Tables& tables : all) {
    const Status migrated = tables.migrate(tables.url);
    if (!migrated.ok()) {
      std::cerr << "weir: " << migrated.error().message << '\n';
      return StartFailure(migrated.error());
    }
    std::cout << tables.name << ": up to date in " << config::WithoutSecrets(tables.url) << '\n';
  }
  return 0;
}

void Configure(CLI::App& word, int& exit_code) {
  static std::vector<std::string> stores;
  static std::string policies;
  static std::string slots;
  static std::string notify;
  word.add_option("--store", stores,
                  "postgres://… or mysql://…: where limits and policies are kept; may be repeated")
      ->envname("WEIR_STORE")
      ->allow_extra_args(false);
  word.add_option("--policy-store", policies,
                  "postgres://… or mysql://…: where policies are kept, if not in the store")
      ->envname("WEIR_POLICY_STORE");
  word.add_option("--slots-store", slots, "postgres://…: where slots are kept")
      ->envname("WEIR_SLOTS_STORE");
  word.add_option("--notify-store", notify, "postgres://…: where notify's data is kept")
      ->envname("WEIR_NOTIFY_STORE");
  word.footer(
      "Safe to repeat, and to run on several nodes at once. Needs the right to create tables,\n"
      "which `weir serve` then does not (store_migrate: false).");
  word.callback([&exit_code] {
    std::vector<Tables> all;
    for (const std::string& store : stores) {
      for (Tables& tables : OfStore(store)) all.push_back(std::move(tables));
    }
    if (IsPostgres(policies) || IsMysql(policies)) {
      all.push_back({"policies", policies, MigratePolicies});
    }
    if (!slots.empty()) {
      all.push_back(OfPostgres("slots", "--slots-store", slots, slots::postgres::Migrations()));
    }
    if (!notify.empty()) {
      all.push_back(OfPostgres("notify", "--notify-store", notify, notify::postgres::Migrations()));
    }
    exit_code = Migrate(all);
  });
}

const Command kMigrate("migrate", "Make or update the tables of SQL stores.", Configure);

}  // namespace
}  // namespace weir::app::migrate_command
