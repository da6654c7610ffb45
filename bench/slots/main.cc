// ./dev bench slots [execution|assignment|year]: how fast slots are assigned and executed, on both
// stores and in the plain way, and how much space a year of them takes, in one run. Prints `figure`
// lines. Each PostgreSQL is started for this run with fsync on.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "drivers/sqlite/database.h"
#include "execution_figures.h"
#include "figure.h"
#include "http_figures.h"
#include "plain_way.h"
#include "slots/postgres/slot_store.h"
#include "slots/sqlite/slot_store.h"
#include "store_figures.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"
#include "year_figures.h"

namespace weir::bench {
namespace {

// Events per second in batches; cost of an event with few and with many slots in the store.
double MeasureStore(slots::SlotStore& store, const std::string& name, std::int64_t many) {
  PutConfig(store, "feed");
  const double seconds = AssignInBatches(store, "feed", "feed-", 500'000, 10'000);
  const double rate = 500'000 / seconds;
  Figure(name + ".batch.events_per_s", rate, "events/s");
  Figure(name + ".batch.500k_seconds", seconds, "s");
  // The same hot time repeatedly: windows up to the frontier are full.
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

// The service on this store, as seen by its clients.
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

double BestPlain(double (*measure)(const std::string&, int, double), const std::string& url) {
  double best = 0;
  for (const int connections : {1, 4, 8, 16}) best = std::max(best, measure(url, connections, 2));
  return best;
}

// How slots are executed: claim, done and `weir dispatch`.
void RunExecution() {
  const test::PostgresServer server;
  const double plain = BestPlain(MeasurePlainClaims, server.url());
  Figure("slots.postgres.plain.claimed_and_done_per_s", plain, "events/s");
  {
    slots::postgres::PostgresSlotStore store({.url = server.url()});
    const double rate = MeasureExecution(store, "slots.postgres");
    Figure("slots.postgres.claimed_and_done_to_plain", rate / plain, "x");
    MeasureDispatch(store, server.url(), "slots.postgres");
  }
  const test::TempDir dir;
  const std::string path = (dir / "weir.db").string();
  auto database = weir::sqlite::Database::Open({.path = path});
  auto store = slots::sqlite::SqliteSlotStore::Open(**database);
  MeasureExecution(**store, "slots.sqlite");
  MeasureDispatch(**store, "sqlite:" + path, "slots.sqlite");
  MeasureClaimCost("slots.postgres");
}

// How slots are assigned.
void RunAssignment() {
  const test::PostgresServer server;
  const double plain = BestPlain(MeasurePlainWay, server.url());
  Figure("slots.postgres.plain.events_per_s", plain, "events/s");
  {
    slots::postgres::PostgresSlotStore store({.url = server.url()});
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
  MeasureStore(**store, "slots.sqlite", 1'000'000);
}

int Run(const std::string& part) {
  const bool all = part.empty();
  if (!all && part != "execution" && part != "assignment" && part != "year") {
    std::fprintf(stderr, "slots: unknown part %s: execution, assignment or year\n", part.c_str());
    return 2;
  }
  if (all || part == "execution") RunExecution();
  if (all || part == "assignment") RunAssignment();
  if (all || part == "year") MeasureYear("slots.postgres");
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Run(argc > 1 ? argv[1] : ""); }
