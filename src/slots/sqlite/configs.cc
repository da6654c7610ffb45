#include "slots/sqlite/configs.h"

#include <string>
#include <utility>

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Status LoadTenants(Connection& connection, Config& config) {
  Result<Statement> query = connection.Prepare(kReadTenants);
  if (!query.ok()) return query.error();
  return query->BindAll(config.name, config.version).ForEach([&](const Statement& row) {
    config.tenants.emplace_back(std::string(row.Text(0)), row.Int(1));
  });
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
  for (const auto& [tenant, weight] : config.tenants) {
    Status s = connection.Run(kInsertTenant, config.name, version, tenant, weight);
    if (!s.ok()) return s;
  }
  return {};
}

Status CountTenants(Connection& connection, std::int64_t id, const Config& config,
                    std::int64_t version) {
  Status s = connection.Run(kDeleteTenantCounters, id);
  if (!s.ok() || config.tenants.empty()) return s;
  return connection.Run(kCountTenants, id, config.window_size, config.name, version);
}

Status CarryOtherSizes(Connection& connection, std::int64_t id, const Config& config) {
  Status s = connection.Run(kClearCarried, id, config.window_size);
  if (!s.ok()) return s;
  const Result<std::int64_t> others = connection.ReadNumber(kHasOtherSizes, id, config.window_size);
  if (!others.ok()) return others.error();
  if (*others == 0) return {};
  return connection.Run(kCarryOtherSizes, id, config.window_size);
}

Status RefreshWindows(Connection& connection, std::int64_t id, const Config& config,
                      std::int64_t version) {
  if (Status s = CarryOtherSizes(connection, id, config); !s.ok()) return s;
  Status s = connection.Run(kCloseFullWindows, id, config.window_size, config.max_per_window);
  if (!s.ok()) return s;
  s = connection.Run(kAddSuccessors, id, config.window_size);
  if (!s.ok()) return s;
  s = CountTenants(connection, id, config, version);
  if (!s.ok() || (config.tenants.empty() && version == 1)) return s;
  // Update the events' classes to the config's tenants.
  return connection.Run(kClassifyEvents, id, config.name, version, config.tenants.size());
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
  auto name = connection.ReadFirst(
      kNameOf, [](const Statement& row) { return std::string(row.Text(0)); }, id);
  if (!name.ok()) return name.error();
  return std::move(*name).value_or("");
}

Result<std::int64_t> InsertConfig(Connection& connection, const Config& config) {
  const auto next = connection.ReadFirst(
      kNextVersion, [](const Statement& row) { return std::pair(row.Int(0), row.Int(1)); },
      config.name);
  if (!next.ok()) return next.error();
  const auto [id, version] = **next;
  if (Result<bool> s = DeactivateConfig(connection, config.name); !s.ok()) return s.error();
  Status s = connection.Run(kInsertConfig, id, config.name, version, config.window_size,
                            config.max_per_window, config.headroom, config.fair_windows,
                            config.created_at, FormatCalendar(config.calendar), config.past);
  if (s.ok()) s = InsertTenants(connection, config, version);
  if (s.ok()) s = RefreshWindows(connection, id, config, version);
  if (!s.ok()) return s.error();
  return version;
}

Result<bool> DeactivateConfig(Connection& connection, std::string_view name) {
  if (Status s = connection.Run(kDeactivateConfig, name); !s.ok()) return s.error();
  return connection.changes() > 0;
}

}  // namespace weir::slots::sqlite
