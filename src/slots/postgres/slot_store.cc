#include "slots/postgres/slot_store.h"

#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/schema.h"

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using PgAnswer = weir::postgres::Answer;

constexpr std::size_t kMaxExamples = 20;

}  // namespace

PostgresSlotStore::PostgresSlotStore(Options options)
    : worker_(std::make_unique<weir::postgres::Worker>(weir::postgres::WorkerOptions{
          .connection = {.url = std::move(options.url),
                         .reconnect_delay = std::chrono::milliseconds(20)},
          .connections = options.connections,
          .component = "slots",
          .steps = Migrations(),
          .long_timeout = std::chrono::minutes(10)})) {
  worker_->Start();
}

PostgresSlotStore::~PostgresSlotStore() = default;

const Config* PostgresSlotStore::Timed(std::string_view config) const {
  const auto found = timings_.find(config);
  return found == timings_.end() ? nullptr : &found->second;
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
