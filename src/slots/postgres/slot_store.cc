#include "slots/postgres/slot_store.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "slots/batch.h"
#include "slots/postgres/reading.h"
#include "slots/postgres/worker.h"

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using PgAnswer = weir::postgres::Answer;

constexpr int kAskAgain = 4;  // see weir_slots_assign
constexpr std::size_t kMaxExamples = 20;

constexpr std::string_view kConfigColumns =
    "SELECT config_name, version, window_ms, max_per_window, headroom, fair_windows, "
    "cardinality(tenants), active, created_at, tenants[i], weights[i] FROM rate_limit_config "
    "LEFT JOIN LATERAL generate_subscripts(tenants, 1) i ON true ";

std::string ConfigQuery(std::string_view rest) {
  return std::string(kConfigColumns) + std::string(rest);
}

// One row per tenant, or one for a config without.
std::vector<Config> ReadConfigs(const Rows& rows) {
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
                         .created_at = rows.Int(row, 8)});
    }
    if (!rows.IsNull(row, 9)) {
      configs.back().tenants.emplace_back(rows.Text(row, 9), rows.Int(row, 10));
    }
  }
  return configs;
}

Params AssignParams(const std::vector<Ask>& asks, const ConfigGroup& group) {
  std::vector<std::string_view> events;
  std::vector<std::int64_t> requested;
  std::vector<std::int64_t> earliest;
  std::vector<std::optional<std::string_view>> tenants;
  std::vector<std::int64_t> randoms;
  std::vector<std::optional<std::string_view>> payloads;
  for (std::size_t index : group.asks) {
    const Ask& ask = asks[index];
    events.push_back(ask.event_id);
    requested.push_back(ask.requested);
    earliest.push_back(ask.requested);
    tenants.push_back(ask.tenant.empty() ? std::nullopt
                                         : std::optional<std::string_view>(ask.tenant));
    randoms.push_back(ask.random);
    payloads.push_back(ask.payload.empty() ? std::nullopt
                                           : std::optional<std::string_view>(ask.payload));
  }
  Params params;
  params.Text(group.config)
      .TextArray(events)
      .IntArray(requested)
      .IntArray(earliest)
      .TextArray(tenants)
      .IntArray(randoms)
      .TextArray(payloads)
      .Int(0);
  return params;
}

// What happens to one AssignMany until all of its groups are answered. On the worker's thread.
struct Assignment {
  std::vector<Ask> asks;
  Batch batch;
  std::vector<Answer> answers;
  std::size_t open = 0;  // groups that are not answered yet
  Status failure;
  SlotStore::Done<std::vector<Answer>> done;
  std::vector<std::size_t> again;  // asks whose event was being archived

  Assignment(std::vector<Ask> given, SlotStore::Done<std::vector<Answer>> callback)
      : asks(std::move(given)), batch(asks), answers(asks.size()), done(std::move(callback)) {}

  void TakeGroup(const ConfigGroup& group, const Rows& rows) {
    for (int row = 0; row < rows.size(); ++row) {
      const std::size_t index = group.asks[static_cast<std::size_t>(rows.Int(row, 0) - 1)];
      const std::int64_t outcome = rows.Int(row, 1);
      const Ask& ask = asks[index];
      Answer& answer = answers[index];
      if (outcome == kAskAgain) {
        again.push_back(index);
        continue;
      }
      answer.outcome = static_cast<Outcome>(outcome);
      if (WasThere(answer.outcome)) {
        answer.slot = ReadSlot(rows, row, 2, ask.event_id);
      } else {
        answer.slot = {ask.event_id,  ask.config,       ask.tenant,
                       ask.requested, rows.Int(row, 5), rows.Int(row, 6)};
      }
    }
  }

  void Finish() {
    if (!failure.ok()) return done(failure.error());
    batch.CopyAnswers(asks, answers);
    done(std::move(answers));
  }
};

}  // namespace

PostgresSlotStore::PostgresSlotStore(Options options)
    : worker_(std::make_unique<Worker>(std::move(options))) {}

PostgresSlotStore::~PostgresSlotStore() = default;

void PostgresSlotStore::AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) {
  auto work = std::make_shared<Assignment>(std::move(asks), std::move(done));
  worker_->Post([this, work] {
    work->open = work->batch.groups().size();
    if (work->open == 0) return work->Finish();
    for (const ConfigGroup& group : work->batch.groups()) {
      worker_->Run("SELECT * FROM weir_slots_assign($1, $2, $3, $4, $5, $6, $7, $8::int)",
                   AssignParams(work->asks, group), [this, work, &group](PgAnswer answer) {
                     if (answer.status.ok()) {
                       work->TakeGroup(group, answer.rows);
                     } else {
                       work->failure = answer.status;
                     }
                     if (--work->open > 0) return;
                     if (!work->failure.ok() || work->again.empty()) return work->Finish();
                     std::vector<Ask> rest;
                     for (std::size_t index : work->again) rest.push_back(work->asks[index]);
                     AssignMany(std::move(rest), [work](Result<std::vector<Answer>> answers) {
                       if (!answers.ok()) return work->done(answers.error());
                       for (std::size_t i = 0; i < work->again.size(); ++i) {
                         work->answers[work->again[i]] = std::move((*answers)[i]);
                       }
                       work->Finish();
                     });
                   });
    }
  });
}

void PostgresSlotStore::PutConfig(Config config, Done<Config> done) {
  worker_->Post([this, config = std::move(config), done = std::move(done)]() mutable {
    using std::chrono::system_clock;
    config.created_at = std::chrono::duration_cast<std::chrono::milliseconds>(
                            system_clock::now().time_since_epoch())
                            .count();
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
    params.Int(config.created_at).Text("").Int(0);
    // On the slow lane: with many slots of another window size it reads them all.
    worker_->RunLong(
        "SELECT weir_slots_put_config($1, $2, $3, $4, $5, $6, $7, $8, $9, "
        "$10::smallint)",
        std::move(params),
        [config = std::move(config), done = std::move(done)](PgAnswer answer) mutable {
          if (!answer.status.ok()) return done(answer.status.error());
          config.version = answer.rows.Int(0, 0);
          done(std::move(config));
        });
  });
}

void PostgresSlotStore::GetConfig(std::string name, Done<std::optional<Config>> done) {
  worker_->Post([this, name = std::move(name), done = std::move(done)]() mutable {
    worker_->Run(ConfigQuery("WHERE config_name = $1 AND active ORDER BY i"),
                 std::move(Params().Text(name)), [done = std::move(done)](PgAnswer answer) {
                   if (!answer.status.ok()) return done(answer.status.error());
                   std::vector<Config> configs = ReadConfigs(answer.rows);
                   if (configs.empty()) return done(std::optional<Config>());
                   done(std::optional<Config>(std::move(configs.front())));
                 });
  });
}

void PostgresSlotStore::ListConfigs(Done<std::vector<Config>> done) {
  worker_->Post([this, done = std::move(done)]() mutable {
    worker_->Run(ConfigQuery("WHERE active ORDER BY config_name, i"), {},
                 [done = std::move(done)](PgAnswer answer) {
                   if (!answer.status.ok()) return done(answer.status.error());
                   done(ReadConfigs(answer.rows));
                 });
  });
}

void PostgresSlotStore::ListVersions(std::string name, Done<std::vector<Config>> done) {
  worker_->Post([this, name = std::move(name), done = std::move(done)]() mutable {
    worker_->Run(ConfigQuery("WHERE config_name = $1 ORDER BY version DESC, i"),
                 std::move(Params().Text(name)), [done = std::move(done)](PgAnswer answer) {
                   if (!answer.status.ok()) return done(answer.status.error());
                   done(ReadConfigs(answer.rows));
                 });
  });
}

void PostgresSlotStore::Deactivate(std::string name, Done<bool> done) {
  worker_->Post([this, name = std::move(name), done = std::move(done)]() mutable {
    worker_->Run("SELECT weir_slots_deactivate($1)", std::move(Params().Text(name)),
                 [done = std::move(done)](PgAnswer answer) {
                   if (!answer.status.ok()) return done(answer.status.error());
                   done(answer.rows.Int(0, 0) != 0);
                 });
  });
}

void PostgresSlotStore::ListWindows(std::string config, Millis from, std::size_t limit,
                                    Done<std::vector<WindowLoad>> done) {
  worker_->Post([this, config = std::move(config), from, limit, done = std::move(done)]() mutable {
    Params params =
        std::move(Params().Text(config).Int(from).Int(static_cast<std::int64_t>(limit)));
    worker_->Run(
        "SELECT window_start, w.window_ms, slot_count, carried, status = 'OPEN' "
        "FROM rate_limit_config c JOIN rate_limit_window_counter w USING (config_id, window_ms) "
        "WHERE config_name = $1 AND active AND window_start >= $2 ORDER BY window_start LIMIT $3",
        std::move(params), [done = std::move(done)](PgAnswer answer) {
          if (!answer.status.ok()) return done(answer.status.error());
          std::vector<WindowLoad> windows;
          windows.reserve(static_cast<std::size_t>(answer.rows.size()));
          for (int row = 0; row < answer.rows.size(); ++row) {
            windows.push_back({answer.rows.Int(row, 0), answer.rows.Int(row, 1),
                               answer.rows.Int(row, 2), answer.rows.Int(row, 3),
                               answer.rows.Int(row, 4) != 0});
          }
          done(std::move(windows));
        });
  });
}

void PostgresSlotStore::Verify(Done<Findings> done) {
  worker_->Post([this, done = std::move(done)]() mutable {
    worker_->RunLong(
        "SELECT * FROM weir_slots_verify()", {}, [done = std::move(done)](PgAnswer answer) {
          if (!answer.status.ok()) return done(answer.status.error());
          const Rows& rows = answer.rows;
          Findings findings{
              .windows = rows.Int(0, 3), .slots = rows.Int(0, 4), .problems = rows.size() - 1};
          for (int row = 1; row < rows.size() && findings.examples.size() < kMaxExamples; ++row) {
            findings.examples.push_back(
                std::string(rows.Text(row, 0)) + " " + FormatInstant(rows.Int(row, 1)) + ": " +
                std::string(rows.Text(row, 6)) + " (counter " + std::to_string(rows.Int(row, 3)) +
                ", slots " + std::to_string(rows.Int(row, 4)) + ", maximum " +
                std::to_string(rows.Int(row, 5)) + ")");
          }
          done(std::move(findings));
        });
  });
}

}  // namespace weir::slots::postgres
