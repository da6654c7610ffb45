#include "slots/sqlite/configs.h"

#include <string>

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

// Runs `sql` with ?1 = id, ?2 = window size, ?3 = maximum, as far as it has them.
Status RunFor(Connection& connection, std::string_view sql, std::int64_t id, const Config& config,
              int parameters) {
  Result<Statement> statement = connection.Prepare(sql);
  if (!statement.ok()) return statement.error();
  statement->Bind(1, id);
  if (parameters >= 2) statement->Bind(2, config.window_size);
  if (parameters >= 3) statement->Bind(3, config.max_per_window);
  return statement->Run();
}

Status LoadTenants(Connection& connection, Config& config) {
  Result<Statement> query = connection.Prepare(kReadTenants);
  if (!query.ok()) return query.error();
  query->Bind(1, config.name).Bind(2, config.version);
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) return {};
    config.tenants.emplace_back(std::string(query->Text(0)), query->Int(1));
  }
}

Result<std::vector<StoredConfig>> ReadAll(Connection& connection, Statement& query) {
  std::vector<StoredConfig> configs;
  for (;;) {
    Result<bool> row = query.Step();
    if (!row.ok()) return row.error();
    if (!*row) return configs;
    StoredConfig stored{query.Int(0), Config{.name = std::string(query.Text(1)),
                                             .version = query.Int(2),
                                             .window_size = query.Int(3),
                                             .max_per_window = query.Int(4),
                                             .headroom = query.Int(5),
                                             .fair_windows = query.Int(6),
                                             .tenants = {},
                                             .active = query.Int(7) != 0,
                                             .created_at = query.Int(8)}};
    Result<Calendar> calendar = ParseCalendar(query.Text(9));
    if (!calendar.ok()) return calendar.error();
    stored.config.calendar = std::move(*calendar);
    stored.config.past = static_cast<Past>(query.Int(10));
    if (Status s = LoadTenants(connection, stored.config); !s.ok()) return s.error();
    configs.push_back(std::move(stored));
  }
}

Status InsertTenants(Connection& connection, const Config& config, std::int64_t version) {
  Result<Statement> insert = connection.Prepare(kInsertTenant);
  if (!insert.ok()) return insert.error();
  for (const auto& [tenant, weight] : config.tenants) {
    insert->Bind(1, config.name).Bind(2, version).Bind(3, tenant).Bind(4, weight);
    if (Status s = insert->Run(); !s.ok()) return s;
  }
  return {};
}

Status CountTenants(Connection& connection, std::int64_t id, const Config& config,
                    std::int64_t version) {
  Status s = RunFor(connection, kDeleteTenantCounters, id, config, 1);
  if (!s.ok() || config.tenants.empty()) return s;
  Result<Statement> insert = connection.Prepare(kCountTenants);
  if (!insert.ok()) return insert.error();
  insert->Bind(1, id).Bind(2, config.window_size).Bind(3, config.name).Bind(4, version);
  return insert->Run();
}

// An event's class follows its config's tenants.
Status ClassifyEvents(Connection& connection, std::int64_t id, const Config& config,
                      std::int64_t version) {
  Result<Statement> update = connection.Prepare(kClassifyEvents);
  if (!update.ok()) return update.error();
  update->Bind(1, id).Bind(2, config.name).Bind(3, version);
  return update->Bind(4, static_cast<std::int64_t>(config.tenants.size())).Run();
}

Status CarryOtherSizes(Connection& connection, std::int64_t id, const Config& config) {
  Status s = RunFor(connection, kClearCarried, id, config, 2);
  if (!s.ok()) return s;
  Result<Statement> query = connection.Prepare(kHasOtherSizes);
  if (!query.ok()) return query.error();
  Result<bool> has_others = query->Bind(1, id).Bind(2, config.window_size).Step();
  if (!has_others.ok()) return has_others.error();
  if (!*has_others) return {};
  return RunFor(connection, kCarryOtherSizes, id, config, 2);
}

Status RefreshWindows(Connection& connection, std::int64_t id, const Config& config,
                      std::int64_t version) {
  if (Status s = CarryOtherSizes(connection, id, config); !s.ok()) return s;
  Status s = RunFor(connection, kCloseFullWindows, id, config, 3);
  if (!s.ok()) return s;
  s = RunFor(connection, kAddSuccessors, id, config, 2);
  if (!s.ok()) return s;
  s = CountTenants(connection, id, config, version);
  if (!s.ok() || (config.tenants.empty() && version == 1)) return s;
  return ClassifyEvents(connection, id, config, version);
}

struct Place {
  std::int64_t id = 0;
  std::int64_t version = 0;
};

Result<Place> NextVersion(Connection& connection, std::string_view name) {
  Result<Statement> query = connection.Prepare(kNextVersion);
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, name).Step();
  if (!row.ok()) return row.error();
  return Place{query->Int(0), query->Int(1)};
}

Result<std::optional<StoredConfig>> LoadOne(Connection& connection, std::string_view name,
                                            std::string_view which) {
  Result<Statement> query = connection.Prepare(std::string(kSelectConfig) + std::string(which));
  if (!query.ok()) return query.error();
  query->Bind(1, name);
  Result<std::vector<StoredConfig>> found = ReadAll(connection, *query);
  if (!found.ok()) return found.error();
  if (found->empty()) return std::optional<StoredConfig>();
  return std::optional<StoredConfig>(std::move(found->front()));
}

}  // namespace

Result<std::optional<StoredConfig>> LoadActive(Connection& connection, std::string_view name) {
  return LoadOne(connection, name, " WHERE config_name = ?1 AND active");
}

Result<std::optional<StoredConfig>> LoadLatest(Connection& connection, std::string_view name) {
  return LoadOne(connection, name, " WHERE config_name = ?1 ORDER BY version DESC LIMIT 1");
}

Result<std::vector<Config>> LoadConfigs(Connection& connection,
                                        std::optional<std::string_view> name) {
  Result<Statement> query = connection.Prepare(
      std::string(kSelectConfig) + (name ? " WHERE config_name = ?1 ORDER BY version DESC"
                                         : " WHERE active ORDER BY config_name"));
  if (!query.ok()) return query.error();
  if (name) query->Bind(1, *name);
  Result<std::vector<StoredConfig>> found = ReadAll(connection, *query);
  if (!found.ok()) return found.error();
  std::vector<Config> configs;
  for (StoredConfig& stored : *found) configs.push_back(std::move(stored.config));
  return configs;
}

Result<std::string> NameOf(Connection& connection, std::int64_t id) {
  Result<Statement> query = connection.Prepare(kNameOf);
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, id).Step();
  if (!row.ok()) return row.error();
  return std::string(*row ? query->Text(0) : std::string_view());
}

Result<std::int64_t> InsertConfig(Connection& connection, const Config& config) {
  Result<Place> place = NextVersion(connection, config.name);
  if (!place.ok()) return place.error();
  if (Result<bool> s = DeactivateConfig(connection, config.name); !s.ok()) return s.error();
  Result<Statement> insert = connection.Prepare(kInsertConfig);
  if (!insert.ok()) return insert.error();
  insert->Bind(1, place->id).Bind(2, config.name).Bind(3, place->version);
  insert->Bind(4, config.window_size).Bind(5, config.max_per_window).Bind(6, config.headroom);
  insert->Bind(7, config.fair_windows).Bind(8, config.created_at);
  const std::string calendar = FormatCalendar(config.calendar);
  insert->Bind(9, calendar).Bind(10, static_cast<std::int64_t>(config.past));
  if (Status s = insert->Run(); !s.ok()) return s.error();
  if (Status s = InsertTenants(connection, config, place->version); !s.ok()) return s.error();
  Status s = RefreshWindows(connection, place->id, config, place->version);
  if (!s.ok()) return s.error();
  return place->version;
}

Result<bool> DeactivateConfig(Connection& connection, std::string_view name) {
  Result<Statement> update = connection.Prepare(kDeactivateConfig);
  if (!update.ok()) return update.error();
  update->Bind(1, name);
  if (Status s = update->Run(); !s.ok()) return s.error();
  return connection.changes() > 0;
}

}  // namespace weir::slots::sqlite
