#include "slots/sqlite/configs.h"

#include <string>

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

constexpr std::string_view kColumns =
    "SELECT config_id, config_name, version, window_ms, max_per_window, headroom, fair_windows, "
    "active, created_at, calendar, past FROM rate_limit_config ";

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
  Result<Statement> query = connection.Prepare(
      "SELECT tenant, weight FROM rate_limit_config_tenant "
      "WHERE config_name = ?1 AND version = ?2 ORDER BY tenant");
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
  Result<Statement> insert =
      connection.Prepare("INSERT INTO rate_limit_config_tenant VALUES (?1, ?2, ?3, ?4)");
  if (!insert.ok()) return insert.error();
  for (const auto& [tenant, weight] : config.tenants) {
    insert->Bind(1, config.name).Bind(2, version).Bind(3, tenant).Bind(4, weight);
    if (Status s = insert->Run(); !s.ok()) return s;
  }
  return {};
}

Status CountTenants(Connection& connection, std::int64_t id, const Config& config,
                    std::int64_t version) {
  Status s = RunFor(connection, "DELETE FROM rate_limit_tenant_counter WHERE config_id = ?1", id,
                    config, 1);
  if (!s.ok() || config.tenants.empty()) return s;
  Result<Statement> insert = connection.Prepare(
      "INSERT INTO rate_limit_tenant_counter "
      "SELECT ?1, ?2, coalesce(t.tenant, '*'), s.window_start, count(*) "
      "FROM rate_limit_event_slot s LEFT JOIN rate_limit_config_tenant t "
      "  ON t.config_name = ?3 AND t.version = ?4 AND t.tenant = s.tenant "
      "WHERE s.config_id = ?1 AND s.window_ms = ?2 AND s.state <> 4 GROUP BY 3, 4");
  if (!insert.ok()) return insert.error();
  insert->Bind(1, id).Bind(2, config.window_size).Bind(3, config.name).Bind(4, version);
  return insert->Run();
}

// An event's class follows its config's tenants.
Status ClassifyEvents(Connection& connection, std::int64_t id, const Config& config,
                      std::int64_t version) {
  Result<Statement> update = connection.Prepare(
      "UPDATE rate_limit_event_slot AS s SET tenant_class = CASE WHEN ?4 = 0 THEN '' ELSE "
      "coalesce((SELECT t.tenant FROM rate_limit_config_tenant t WHERE t.config_name = ?2 "
      "AND t.version = ?3 AND t.tenant = s.tenant), '*') END WHERE config_id = ?1 AND state = 0");
  if (!update.ok()) return update.error();
  update->Bind(1, id).Bind(2, config.name).Bind(3, version);
  return update->Bind(4, static_cast<std::int64_t>(config.tenants.size())).Run();
}

Status CarryOtherSizes(Connection& connection, std::int64_t id, const Config& config) {
  Status s = RunFor(connection,
                    "UPDATE rate_limit_window_counter SET carried = 0 "
                    "WHERE config_id = ?1 AND window_ms = ?2 AND carried > 0",
                    id, config, 2);
  if (!s.ok()) return s;
  Result<Statement> query = connection.Prepare(
      "SELECT 1 FROM rate_limit_config WHERE config_id = ?1 AND window_ms <> ?2 LIMIT 1");
  if (!query.ok()) return query.error();
  Result<bool> has_others = query->Bind(1, id).Bind(2, config.window_size).Step();
  if (!has_others.ok()) return has_others.error();
  if (!*has_others) return {};
  return RunFor(
      connection,
      "INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start, carried) "
      "SELECT ?1, ?2, scheduled_time - scheduled_time % ?2 AS w, count(*) "
      "FROM rate_limit_event_slot WHERE config_id = ?1 AND window_ms <> ?2 AND state <> 4 "
      "GROUP BY w "
      "ON CONFLICT DO UPDATE SET carried = excluded.carried",
      id, config, 2);
}

Status RefreshWindows(Connection& connection, std::int64_t id, const Config& config,
                      std::int64_t version) {
  if (Status s = CarryOtherSizes(connection, id, config); !s.ok()) return s;
  Status s = RunFor(connection,
                    "UPDATE rate_limit_window_counter SET status = "
                    "CASE WHEN slot_count + carried >= ?3 THEN 'CLOSED' ELSE 'OPEN' END "
                    "WHERE config_id = ?1 AND window_ms = ?2",
                    id, config, 3);
  if (!s.ok()) return s;
  s = RunFor(connection,
             "INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start) "
             "SELECT ?1, ?2, window_start + ?2 FROM rate_limit_window_counter "
             "WHERE config_id = ?1 AND window_ms = ?2 AND status = 'CLOSED' ON CONFLICT DO NOTHING",
             id, config, 2);
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
  Result<Statement> query = connection.Prepare(
      "SELECT coalesce((SELECT config_id FROM rate_limit_config WHERE config_name = ?1 LIMIT 1), "
      "  (SELECT coalesce(max(config_id), 0) + 1 FROM rate_limit_config)), "
      "(SELECT coalesce(max(version), 0) + 1 FROM rate_limit_config WHERE config_name = ?1)");
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, name).Step();
  if (!row.ok()) return row.error();
  return Place{query->Int(0), query->Int(1)};
}

Result<std::optional<StoredConfig>> LoadOne(Connection& connection, std::string_view name,
                                            std::string_view which) {
  Result<Statement> query = connection.Prepare(std::string(kColumns).append(which));
  if (!query.ok()) return query.error();
  query->Bind(1, name);
  Result<std::vector<StoredConfig>> found = ReadAll(connection, *query);
  if (!found.ok()) return found.error();
  if (found->empty()) return std::optional<StoredConfig>();
  return std::optional<StoredConfig>(std::move(found->front()));
}

}  // namespace

Result<std::optional<StoredConfig>> LoadActive(Connection& connection, std::string_view name) {
  return LoadOne(connection, name, "WHERE config_name = ?1 AND active");
}

Result<std::optional<StoredConfig>> LoadLatest(Connection& connection, std::string_view name) {
  return LoadOne(connection, name, "WHERE config_name = ?1 ORDER BY version DESC LIMIT 1");
}

Result<std::vector<Config>> LoadConfigs(Connection& connection,
                                        std::optional<std::string_view> name) {
  Result<Statement> query = connection.Prepare(
      std::string(kColumns) + (name ? "WHERE config_name = ?1 ORDER BY version DESC"
                                    : "WHERE active ORDER BY config_name"));
  if (!query.ok()) return query.error();
  if (name) query->Bind(1, *name);
  Result<std::vector<StoredConfig>> found = ReadAll(connection, *query);
  if (!found.ok()) return found.error();
  std::vector<Config> configs;
  for (StoredConfig& stored : *found) configs.push_back(std::move(stored.config));
  return configs;
}

Result<std::string> NameOf(Connection& connection, std::int64_t id) {
  Result<Statement> query =
      connection.Prepare("SELECT config_name FROM rate_limit_config WHERE config_id = ?1 LIMIT 1");
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, id).Step();
  if (!row.ok()) return row.error();
  return std::string(*row ? query->Text(0) : std::string_view());
}

Result<std::int64_t> InsertConfig(Connection& connection, const Config& config) {
  Result<Place> place = NextVersion(connection, config.name);
  if (!place.ok()) return place.error();
  if (Result<bool> s = DeactivateConfig(connection, config.name); !s.ok()) return s.error();
  Result<Statement> insert = connection.Prepare(
      "INSERT INTO rate_limit_config VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10)");
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
  Result<Statement> update = connection.Prepare(
      "UPDATE rate_limit_config SET active = 0 WHERE config_name = ?1 AND active");
  if (!update.ok()) return update.error();
  update->Bind(1, name);
  if (Status s = update->Run(); !s.ok()) return s.error();
  return connection.changes() > 0;
}

}  // namespace weir::slots::sqlite
