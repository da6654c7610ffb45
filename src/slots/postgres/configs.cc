#include <string_view>
#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/slot_store.h"
#include "slots/timing.h"

// Configs: their versions and which one is active.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using weir::postgres::Worker;

constexpr std::string_view kConfigColumns =
    "SELECT config_name, version, window_ms, max_per_window, headroom, fair_windows, "
    "cardinality(tenants), active, created_at, tenants[i], weights[i], calendar, past FROM "
    "rate_limit_config "
    "LEFT JOIN LATERAL generate_subscripts(tenants, 1) i ON true ";

std::string ConfigQuery(std::string_view rest) { return std::string(kConfigColumns).append(rest); }

// One row per tenant, or a single row for a config without tenants.
Result<std::vector<Config>> ReadConfigs(const Rows& rows) {
  std::vector<Config> configs;
  for (int row = 0; row < rows.size(); ++row) {
    const std::string_view name = rows.Text(row, 0);
    const std::int64_t version = rows.Int(row, 1);
    if (configs.empty() || configs.back().name != name || configs.back().version != version) {
      configs.push_back({.name = std::string(name),
                         .version = version,
                         .window_size = rows.Int(row, 2),
                         .max_per_window = rows.Int(row, 3),
                         .headroom = rows.Int(row, 4),
                         .fair_windows = rows.Int(row, 5),
                         .tenants = {},
                         .active = rows.Int(row, 7) != 0,
                         .created_at = rows.Int(row, 8),
                         .calendar = {},
                         .past = static_cast<Past>(rows.Int(row, 12))});
      Result<Calendar> calendar = ParseCalendar(rows.Text(row, 11));
      if (!calendar.ok()) return calendar.error();
      configs.back().calendar = std::move(*calendar);
    }
    if (!rows.IsNull(row, 9)) {
      configs.back().tenants.emplace_back(rows.Text(row, 9), rows.Int(row, 10));
    }
  }
  return configs;
}

}  // namespace

void PostgresSlotStore::PutConfig(Config config, Done<Config> done) {
  config.created_at = MachineMillis();
  config.active = true;
  std::vector<std::string_view> tenants;
  std::vector<std::int64_t> weights;
  for (const auto& [tenant, weight] : config.tenants) {
    tenants.push_back(tenant);
    weights.push_back(weight);
  }
  Params params;
  params.Text(config.name).Int(config.window_size).Int(config.max_per_window);
  params.Int(config.headroom).Int(config.fair_windows).TextArray(tenants).IntArray(weights);
  params.Int(config.created_at).Text(FormatCalendar(config.calendar));
  params.Int(static_cast<std::int64_t>(config.past));
  // As a long change: with many slots of another window size it reads them all.
  worker_->Ask(&Worker::RunLongChange,
               "SELECT weir_slots_put_config($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::smallint)",
               std::move(params), std::move(done),
               [config = std::move(config)](const Rows& rows) mutable {
                 config.version = rows.Int(0, 0);
                 return std::move(config);
               });
}

void PostgresSlotStore::GetConfig(std::string name, Done<std::optional<Config>> done) {
  worker_->Ask(&Worker::Run, ConfigQuery("WHERE config_name = $1 AND active ORDER BY i"),
               std::move(Params().Text(name)), std::move(done),
               [](const Rows& rows) -> Result<std::optional<Config>> {
                 Result<std::vector<Config>> configs = ReadConfigs(rows);
                 if (!configs.ok()) return configs.error();
                 if (configs->empty()) return std::optional<Config>();
                 return std::optional<Config>(std::move(configs->front()));
               });
}

void PostgresSlotStore::ListConfigs(Done<std::vector<Config>> done) {
  worker_->Ask(&Worker::Run, ConfigQuery("WHERE active ORDER BY config_name, i"), {},
               std::move(done), ReadConfigs);
}

void PostgresSlotStore::ListVersions(std::string name, Done<std::vector<Config>> done) {
  worker_->Ask(&Worker::Run, ConfigQuery("WHERE config_name = $1 ORDER BY version DESC, i"),
               std::move(Params().Text(name)), std::move(done), ReadConfigs);
}

void PostgresSlotStore::Deactivate(std::string name, Done<bool> done) {
  worker_->Ask(&Worker::RunChange, "SELECT weir_slots_deactivate($1)",
               std::move(Params().Text(name)), std::move(done),
               [](const Rows& rows) { return rows.Int(0, 0) != 0; });
}

// Reads the latest versions, active or not, of configs whose calendars have changed.
void PostgresSlotStore::LearnTimings(std::vector<std::string> names,
                                     std::function<void(Status)> then) {
  if (names.empty()) return then({});
  std::string name = std::move(names.back());
  names.pop_back();
  ListVersions(name, [this, name, names = std::move(names),
                      then = std::move(then)](Result<std::vector<Config>> versions) mutable {
    if (!versions.ok()) return then(versions.error());
    if (versions->empty() || !IsTimed(versions->front())) {
      timings_.erase(name);
    } else {
      timings_.insert_or_assign(name, std::move(versions->front()));
    }
    LearnTimings(std::move(names), std::move(then));
  });
}

}  // namespace weir::slots::postgres
