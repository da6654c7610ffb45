#include "slots/postgres/slot_store.h"

#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/sql.h"

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using weir::postgres::Worker;

constexpr std::size_t kMaxExamples = 20;

}  // namespace

PostgresSlotStore::PostgresSlotStore(Options options)
    : worker_(std::make_unique<Worker>(weir::postgres::WorkerOptions{
          .connection = {.url = std::move(options.url),
                         .reconnect_delay = std::chrono::milliseconds(20)},
          .connections = options.connections,
          .component = "slots",
          .steps = Migrations(),
          .long_timeout = std::chrono::minutes(10)})) {
  worker_->Start();
}

PostgresSlotStore::~PostgresSlotStore() { PostgresSlotStore::Close(); }

void PostgresSlotStore::Close() { worker_->Close(); }

const Config* PostgresSlotStore::Timed(std::string_view config) const {
  const auto found = timings_.find(config);
  return found == timings_.end() ? nullptr : &found->second;
}

void PostgresSlotStore::ListWindows(std::string config, Millis from, std::size_t limit,
                                    Done<std::vector<WindowLoad>> done) {
  worker_->Ask(
      &Worker::Run,
      "SELECT window_start, w.window_ms, slot_count, carried, status = 'OPEN' "
      "FROM rate_limit_config c JOIN rate_limit_window_counter w USING (config_id, window_ms) "
      "WHERE config_name = $1 AND active AND window_start >= $2 ORDER BY window_start LIMIT $3",
      std::move(Params().Text(config).Int(from).Int(static_cast<std::int64_t>(limit))),
      std::move(done), [](const Rows& rows) {
        std::vector<WindowLoad> windows;
        for (int row = 0; row < rows.size(); ++row) {
          windows.push_back({rows.Int(row, 0), rows.Int(row, 1), rows.Int(row, 2), rows.Int(row, 3),
                             rows.Int(row, 4) != 0});
        }
        return windows;
      });
}

void PostgresSlotStore::Verify(Done<Findings> done) {
  worker_->Ask(
      &Worker::RunLong,
      "SELECT v.*, (SELECT count(*) FROM rate_limit_window_counter WHERE slot_count > 0) "
      "FROM weir_slots_verify() v",
      {}, std::move(done), [](const Rows& rows) {
        Findings findings{
            .windows = rows.Int(0, 7), .slots = rows.Int(0, 4), .problems = rows.size() - 1};
        for (int row = 1; row < rows.size() && findings.examples.size() < kMaxExamples; ++row) {
          findings.examples.push_back(
              std::string(rows.Text(row, 0)) + " " + FormatInstant(rows.Int(row, 1)) + ": " +
              std::string(rows.Text(row, 6)) + " (counter " + std::to_string(rows.Int(row, 3)) +
              ", slots " + std::to_string(rows.Int(row, 4)) + ", maximum " +
              std::to_string(rows.Int(row, 5)) + ")");
        }
        return findings;
      });
}

}  // namespace weir::slots::postgres
