// weir migrate: creates the tables of SQL stores, or brings them up to date, and lists them.

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "base/url.h"
#include "command.h"
#include "config/config.h"
#include "drivers/postgres/migration.h"
#include "library/backends.h"
#include "notify/postgres/sql.h"
#include "plaintext.h"
#include "slots/postgres/sql.h"

namespace weir::app::migrate_command {
namespace {

bool IsPostgres(const std::string& url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

/// The tables of one part of the service in one database.
struct Tables {
  const char* name;
  std::string flag;  ///< the flag that named it
  std::string url;
  std::function<Status(const std::string& url)> migrate;
};

Status OnlyPostgres(const std::string& flag) {
  return Error{Code::kInvalidArgument, flag + ": only postgres:// databases have tables to create"};
}

/// The tables of a database that nodes share.
std::vector<Tables> OfStore(const std::string& flag, const std::string& url) {
  const library::BackendKind* const kind = library::FindBackend(url);
  std::vector<Tables> all;
  if (kind != nullptr) {
    for (const library::BackendTables& tables : kind->tables) {
      all.push_back({tables.name.data(), flag, url, tables.migrate});
    }
  }
  if (!all.empty()) return all;
  return {{"limits", flag, url, [flag](const std::string&) -> Status {
             return Error{
                 Code::kInvalidArgument,
                 flag + ": only SQL databases have tables; other stores need no migration"};
           }}};
}

Tables OfPostgres(const char* name, const std::string& flag, const std::string& url,
                  std::span<const char* const> steps) {
  return {name, flag, url, [=](const std::string& at) {
            return IsPostgres(at) ? postgres::Migrate(at, name, steps) : OnlyPostgres(flag);
          }};
}

int Migrate(const std::vector<Tables>& all) {
  if (all.empty()) {
    std::cerr
        << "weir: give at least one of --store, --policy-store, --slots-store, --notify-store\n";
    return 2;
  }
  const Tables* before = nullptr;
  for (const Tables& tables : all) {
    if (before == nullptr || before->url != tables.url) WarnOfPlaintext(tables.flag, tables.url);
    before = &tables;
    const Status migrated = tables.migrate(tables.url);
    if (!migrated.ok()) {
      std::cerr << "weir: " << migrated.error().message << '\n';
      return StartFailure(migrated.error());
    }
    std::cout << tables.name << ": up to date in " << WithoutSecrets(tables.url) << '\n';
  }
  return 0;
}

void Configure(Syntax word) {
  static std::vector<std::string> stores;
  static std::string policies;
  static std::string slots;
  static std::string notify;
  word.AddOption("--store", stores,
                 "postgres://… or mysql://…: the limits and stored policies; repeatable")
      .Env("WEIR_STORE")
      .OneValueEach();
  word.AddOption("--policy-store", policies,
                 "postgres://… or mysql://…: stored policies, if not in the store")
      .Env("WEIR_POLICY_STORE");
  word.AddOption("--slots-store", slots, "postgres://…: slots").Env("WEIR_SLOTS_STORE");
  word.AddOption("--notify-store", notify, "postgres://…: notifications").Env("WEIR_NOTIFY_STORE");
  word.Footer(
      "Safe to repeat and to run on several nodes at once. Needs the right to create tables;\n"
      "`weir serve` then does not (set store_migrate: false).");
  word.OnRun([] {
    std::vector<Tables> all;
    for (const std::string& store : stores) {
      for (Tables& tables : OfStore("--store", store)) all.push_back(std::move(tables));
    }
    if (!policies.empty()) {
      for (const Tables& tables : OfStore("--policy-store", policies)) {
        if (std::string_view(tables.name) == "policies") all.push_back(tables);
      }
    }
    if (!slots.empty()) {
      all.push_back(OfPostgres("slots", "--slots-store", slots, slots::postgres::Migrations()));
    }
    if (!notify.empty()) {
      all.push_back(OfPostgres("notify", "--notify-store", notify, notify::postgres::Migrations()));
    }
    return Migrate(all);
  });
}

const Command kMigrate("migrate", "Create or update the tables of SQL stores.", Configure);

}  // namespace
}  // namespace weir::app::migrate_command
