#include "execution_figures.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "figure.h"
#include "slots/postgres/slot_store.h"
#include "store_figures.h"
#include "support/postgres_server.h"
#include "support/weir_process.h"

namespace weir::bench {
namespace {

constexpr std::int64_t kNoCap = 1'000'000'000;

// What claiming and finishing an event costs at the moment.
double ClaimCost(slots::SlotStore& store, const std::string& config) {
  constexpr std::int64_t kEvents = 20'000;
  PutConfig(store, config, kNoCap);
  AssignInBatches(store, config, config + "-", kEvents, 10'000);
  return ClaimAndFinish(store, config, kEvents, 1'000) / kEvents;
}

// Events done in the course of a year, inserted by SQL: claiming this many takes minutes.
void AddDone(test::PostgresServer& server, std::int64_t existing) {
  constexpr std::int64_t kAtOnce = 500'000;
  for (std::int64_t from = 1; from <= existing; from += kAtOnce) {
    const std::int64_t last = std::min(existing, from + kAtOnce - 1);
    server.Query(
        "INSERT INTO rate_limit_event_slot(event_id, config_id, window_ms, window_start, "
        "scheduled_time, requested_time, state, attempts, created_at, claimed_at, finished_at, "
        "payload) SELECT 'old-' || i, c.config_id, c.window_ms, t - t % c.window_ms, t, t, 2, 1, "
        "t, t, t + 5, '{\"amount\":\"12.50\"}' FROM rate_limit_config c, generate_series(" +
        std::to_string(from) + ", " + std::to_string(last) +
        ") i, LATERAL (SELECT 1717243200000 + i * 3000::bigint AS t) x "
        "WHERE c.config_name = 'old'");
  }
  server.Query("ANALYZE rate_limit_event_slot; CHECKPOINT");
}

}  // namespace

double MeasureExecution(slots::SlotStore& store, const std::string& name) {
  constexpr std::int64_t kEvents = 200'000;
  constexpr std::int64_t kSingles = 500;
  PutConfig(store, "executed", kNoCap);
  // Callers that claim one by one may each claim one too many.
  AssignInBatches(store, "executed", "run-", kEvents + 2 * kSingles, 10'000);
  const double each = ClaimAndFinish(store, "executed", kSingles, 1) / kSingles;
  const double rate = kEvents / ClaimAndFinish(store, "executed", kEvents, 1'000);
  Figure(name + ".claimed_and_done_per_s", rate, "events/s");
  Figure(name + ".claimed_and_done_one_by_one_per_s", 1 / each, "events/s");
  return rate;
}

// Alternating, so that if other load slows the machine for a while, it slows both.
void MeasureClaimCost(const std::string& name) {
  const char* const given = std::getenv("WEIR_BENCH_EXISTING");
  const std::int64_t existing = given != nullptr ? std::atoll(given) : 1'000'000;
  test::PostgresServer few_server;
  test::PostgresServer many_server;
  slots::postgres::PostgresSlotStore few_store({.url = few_server.url()});
  slots::postgres::PostgresSlotStore many_store({.url = many_server.url()});
  PutConfig(few_store, "old", kNoCap);
  PutConfig(many_store, "old", kNoCap);
  AddDone(few_server, 10'000);
  AddDone(many_server, existing);
  ClaimCost(few_store, "warm");
  ClaimCost(many_store, "warm");
  double few = 0;
  double many = 0;
  constexpr int kTurns = 7;
  for (int turn = 0; turn < kTurns; ++turn) {
    few += ClaimCost(few_store, "few" + std::to_string(turn)) / kTurns;
    many += ClaimCost(many_store, "many" + std::to_string(turn)) / kTurns;
  }
  Figure(name + ".existing_events", static_cast<double>(existing), "events");
  Figure(name + ".claim_cost_at_10k_existing", few * 1e6, "us/event");
  Figure(name + ".claim_cost_at_many_existing", many * 1e6, "us/event");
  Figure(name + ".claim_cost_ratio_many_to_10k", many / few, "x");
}

void MeasureDispatch(slots::SlotStore& store, const std::string& url, const std::string& name) {
  constexpr std::int64_t kEvents = 200'000;
  // Overdue events are spread over their window, so a long window would dominate the figure.
  PutConfig(store, "dispatched", kNoCap, 100);
  AssignInBatches(store, "dispatched", "go-", kEvents, 10'000);
  test::WeirProcess dispatcher(
      {"dispatch", "--store", url, "--config", "dispatched", "--in-hand", "20000", "--ahead", "0"});
  const double seconds = SecondsUntilDone(store, "dispatched");
  Figure(name + ".dispatched_per_s", kEvents / seconds, "events/s");
  dispatcher.process().Terminate();
}

}  // namespace weir::bench
