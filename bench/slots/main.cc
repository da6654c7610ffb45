// ./dev bench slots: how fast slots are given, on both stores and the plain way, in one run. Prints
// `figure` lines. The PostgreSQL is a fresh one with fsync on.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "drivers/sqlite/database.h"
#include "http_figures.h"
#include "plain_way.h"
#include "slots/postgres/slot_store.h"
#include "slots/sqlite/slot_store.h"
#include "store_figures.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::bench {
namespace {

void Figure(const std::string& name, double value, const char* unit) {
  std::printf("figure %s %.*f %s\n", name.c_str(), value < 100 ? 2 : 0, value, unit);
  std::fflush(stdout);
}

// Events per second in batches; cost of an event with few and with many slots in the store.
double MeasureStore(slots::SlotStore& store, const std::string& name, std::int64_t many) {
  PutConfig(store, "feed");
  const double seconds = AssignInBatches(store, "feed", "feed-", 500'000, 10'000);
  const double rate = 500'000 / seconds;
  Figure(name + ".batch.events_per_s", rate, "events/s");
  Figure(name + ".batch.500k_seconds", seconds, "s");
  // The same hot time again and again: windows up to the frontier are full.
  PutConfig(store, "growing");
  AssignInBatches(store, "growing", "grow-a-", 10'000, 1'000);
  const double few = AssignInBatches(store, "growing", "grow-b-", 20'000, 1'000, 1) / 20'000;
  AssignInBatches(store, "growing", "grow-c-", many - 530'000, 10'000);
  const double lots = AssignInBatches(store, "growing", "grow-d-", 20'000, 1'000, 1) / 20'000;
  Figure(name + ".cost_at_10k_slots", few * 1e6, "us/event");
  Figure(name + ".cost_at_1m_slots", lots * 1e6, "us/event");
  Figure(name + ".cost_ratio_1m_to_10k", lots / few, "x");
  return rate;
}

// Claimed and done, in sets and one by one, which is a transaction for each claim and for each end.
void MeasureExecution(slots::SlotStore& store, const std::string& name) {
  constexpr std::int64_t kEvents = 100'000;
  constexpr std::int64_t kSingles = 500;
  PutConfig(store, "executed", 1'000'000'000);
  AssignInBatches(store, "executed", "run-", kEvents + kSingles, 10'000);
  const double each = ClaimAndFinish(store, "executed", kSingles, 1) / kSingles;
  const double seconds = ClaimAndFinish(store, "executed", kEvents, 1'000);
  Figure(name + ".claimed_and_done_per_s", kEvents / seconds, "events/s");
  Figure(name + ".claimed_and_done_one_by_one_per_s", 1 / each, "events/s");
  Figure(name + ".claimed_in_sets_to_one_by_one", each * kEvents / seconds, "x");
}

// What claiming and finishing an event costs now.
double ClaimCost(slots::SlotStore& store, const std::string& config) {
  constexpr std::int64_t kEvents = 20'000;
  PutConfig(store, config, 1'000'000'000);
  AssignInBatches(store, config, config + "-", kEvents, 10'000);
  return ClaimAndFinish(store, config, kEvents, 1'000) / kEvents;
}

// With few events in the store, and with WEIR_BENCH_EXISTING of them (a million), all done.
void MeasureClaimCost(slots::SlotStore& store, const std::string& name) {
  const char* const given = std::getenv("WEIR_BENCH_EXISTING");
  const std::int64_t existing = given != nullptr ? std::atoll(given) : 1'000'000;
  ClaimCost(store, "warm");
  const double few = ClaimCost(store, "few");
  PutConfig(store, "old", 1'000'000'000);
  AssignInBatches(store, "old", "old-", existing, 10'000);
  ClaimAndFinish(store, "old", existing, 1'000);
  const double lots = ClaimCost(store, "lots");
  Figure(name + ".claim_cost_few_existing", few * 1e6, "us/event");
  Figure(name + ".claim_cost_many_existing", lots * 1e6, "us/event");
  Figure(name + ".claim_cost_ratio_many_to_few", lots / few, "x");
}

// The service on this store, as its clients see it.
void MeasureService(const std::string& name, const std::string& slots_store) {
  const test::TempDir dir;
  std::vector<std::string> args = {"serve",  "--http", "127.0.0.1:0", "--grpc",    "off",
                                   "--resp", "off",    "--data",      dir / "data"};
  if (!slots_store.empty()) args.insert(args.end(), {"--slots-store", slots_store});
  test::WeirProcess weir(args);
  const std::uint16_t port = weir.Port("http");
  MakeConfig(port);
  Figure(name + ".single.events_per_s", MeasureSingles(port, 64, 5), "events/s");
  Figure(name + ".http_500k_seconds", MeasureBatches(port, 500'000), "s");
}

int Run() {
  const test::PostgresServer server;
  double plain = 0;
  for (const int connections : {1, 4, 8, 16}) {
    plain = std::max(plain, MeasurePlainWay(server.url(), connections, 2));
  }
  Figure("slots.postgres.plain.events_per_s", plain, "events/s");
  {
    test::PostgresServer fresh;
    slots::postgres::PostgresSlotStore store({.url = fresh.url()});
    MeasureClaimCost(store, "slots.postgres");
  }
  {
    slots::postgres::PostgresSlotStore store({.url = server.url()});
    MeasureExecution(store, "slots.postgres");
    const double rate = MeasureStore(store, "slots.postgres", 1'000'000);
    Figure("slots.postgres.batch_to_plain", rate / plain, "x");
  }
  {
    test::PostgresServer fresh;
    MeasureService("slots.postgres", fresh.url());
  }
  MeasureService("slots.sqlite", {});
  const test::TempDir dir;
  auto database = weir::sqlite::Database::Open({.path = (dir / "weir.db").string()});
  auto store = slots::sqlite::SqliteSlotStore::Open(**database);
  MeasureExecution(**store, "slots.sqlite");
  MeasureStore(**store, "slots.sqlite", 1'000'000);
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main() { return weir::bench::Run(); }
