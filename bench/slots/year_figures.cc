#include "year_figures.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <sstream>
#include <vector>

#include "figure.h"
#include "slots/postgres/slot_store.h"
#include "store_figures.h"
#include "support/postgres_server.h"

namespace weir::bench {
namespace {

using slots::Millis;

constexpr int kDays = 365;
constexpr int kSettled = 120;  // by then the first ids have been forgotten for a month
constexpr Millis kDay = 86'400'000;
constexpr Millis kFirstDay = 1'717'200'000'000 - 1'717'200'000'000 % kDay;
constexpr Millis kKeep = 30 * kDay;
constexpr Millis kKeepIds = 90 * kDay;
constexpr std::int64_t kPerWindow = 100;
// Autovacuum runs when a fifth of a table is dead: with 30 days in it, after six more.
constexpr int kVacuumDays = 6;

struct Sizes {
  double live_rows;
  double live_bytes;
  double archive_rows;
  double archive_bytes;
  double windows;
  double window_bytes;
};

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "slots: %s\n", why.c_str());
  std::exit(1);
}

// A day's feed in its final state: ids of 27 bytes, payloads of 200, full windows.
void AddDay(test::PostgresServer& server, int day, std::int64_t events) {
  const std::string begin = std::to_string(kFirstDay + day * kDay);
  const std::string windows = std::to_string((events + kPerWindow - 1) / kPerWindow);
  const std::string per = std::to_string(kPerWindow);
  server.Query(
      "INSERT INTO rate_limit_event_slot(event_id, config_id, window_ms, window_start, "
      "scheduled_time, requested_time, state, attempts, created_at, claimed_at, claimed_by, "
      "finished_at, payload) SELECT 'payment-' || lpad('" +
      std::to_string(day) + "', 4, '0') || '-' || lpad(i::text, 14, '0'), c.config_id, 4000, " +
      begin + " + i / " + per + " * 4000, " + begin + " + i / " + per + " * 4000 + i % " + per +
      " * 40, " + begin + ", 2, 1, " + begin + ", " + begin + ", 'dispatcher-1', " + begin +
      " + i / " + per +
      " * 4000 + 3999, repeat('x', 200) FROM rate_limit_config c, "
      "generate_series(0, " +
      std::to_string(events - 1) +
      "::bigint) i WHERE c.config_name = 'feed';"
      "INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start, slot_count, cap) "
      "SELECT c.config_id, 4000, " +
      begin + " + w * 4000, least(" + per + ", " + std::to_string(events) + " - w * " + per +
      "), " + per +
      " FROM rate_limit_config c, "
      "generate_series(0::bigint, " +
      windows +
      " - 1) w WHERE c.config_name = 'feed';"
      "INSERT INTO rate_limit_execution SELECT config_id, window_ms, window_start, slot_count, "
      "slot_count, 0 FROM rate_limit_window_counter WHERE window_start >= " +
      begin);
  if (day % kVacuumDays != 0) return;
  server.Query(
      "VACUUM ANALYZE rate_limit_event_slot, rate_limit_event_archive, rate_limit_window_counter");
}

// Old events are removed in sets, as in the service. Appends the milliseconds of each to `took`.
void Retire(slots::SlotStore& store, Millis now, std::vector<double>& took) {
  const slots::Retention retention{.over_before = now - kKeep, .archived_before = now - kKeepIds};
  for (bool more = true; more;) {
    const auto begun = std::chrono::steady_clock::now();
    std::promise<Result<slots::Retired>> told;
    store.Retire(retention, [&](Result<slots::Retired> gone) { told.set_value(std::move(gone)); });
    const Result<slots::Retired> gone = told.get_future().get();
    if (!gone.ok()) Die(gone.error().message);
    more = gone->archived == retention.limit || gone->dropped == retention.limit;
    if (gone->archived + gone->dropped == 0) continue;
    took.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
            .count());
  }
}

Sizes Measure(test::PostgresServer& server) {
  std::istringstream text(
      server.Query("SELECT (SELECT count(*) FROM rate_limit_event_slot) || ' ' || "
                   "pg_total_relation_size('rate_limit_event_slot') || ' ' || "
                   "(SELECT count(*) FROM rate_limit_event_archive) || ' ' || "
                   "pg_total_relation_size('rate_limit_event_archive') || ' ' || "
                   "(SELECT count(*) FROM rate_limit_window_counter) || ' ' || "
                   "pg_total_relation_size('rate_limit_window_counter') + "
                   "pg_total_relation_size('rate_limit_execution')"));
  Sizes sizes{};
  text >> sizes.live_rows >> sizes.live_bytes >> sizes.archive_rows >> sizes.archive_bytes >>
      sizes.windows >> sizes.window_bytes;
  if (!text) Die("unexpected sizes: " + text.str());
  return sizes;
}

void Print(const std::string& name, const Sizes& settled, const Sizes& end,
           std::vector<double> took) {
  constexpr double kMillion = 1'000'000;
  constexpr double kGiga = 1e9;
  const double live = end.live_bytes / end.live_rows;
  const double archived = end.archive_bytes / end.archive_rows;
  const double window = end.window_bytes / end.windows;
  Figure(name + ".year.live_bytes_per_event", live, "B");
  Figure(name + ".year.archive_bytes_per_event", archived, "B");
  Figure(name + ".year.bytes_per_window", window, "B");
  Figure(name + ".year.live_growth_after_day_120", end.live_bytes / settled.live_bytes, "x");
  Figure(name + ".year.archive_growth_after_day_120", end.archive_bytes / settled.archive_bytes,
         "x");
  Figure(name + ".year.million_a_day.live", live * 30 * kMillion / kGiga, "GB");
  Figure(name + ".year.million_a_day.archive", archived * 60 * kMillion / kGiga, "GB");
  Figure(name + ".year.million_a_day.windows", window * kDays * kMillion / kPerWindow / kGiga,
         "GB");
  std::sort(took.begin(), took.end());
  Figure(name + ".year.set_median", took[took.size() / 2], "ms");
  Figure(name + ".year.set_p99", took[took.size() * 99 / 100], "ms");
}

}  // namespace

void MeasureYear(const std::string& name) {
  const char* const given = std::getenv("WEIR_BENCH_DAY");
  const std::int64_t events = given != nullptr ? std::max(1'000LL, std::atoll(given)) : 1'000;
  test::PostgresServer server({"autovacuum=off"});
  slots::postgres::PostgresSlotStore store({.url = server.url()});
  PutConfig(store, "feed", kPerWindow);
  std::vector<double> took;
  Sizes settled{};
  for (int day = 0; day < kDays; ++day) {
    AddDay(server, day, events);
    Retire(store, kFirstDay + (day + 1) * kDay, took);
    if (day == kSettled) settled = Measure(server);
  }
  const Sizes end = Measure(server);
  if (end.live_rows != 30.0 * static_cast<double>(events) ||
      end.archive_rows != 60.0 * static_cast<double>(events)) {
    Die("30 days should be live and 60 archived, and there are " + std::to_string(end.live_rows) +
        " and " + std::to_string(end.archive_rows) + " events");
  }
  const std::string wrong = server.Query("SELECT count(*) FROM weir_slots_verify()");
  if (wrong != "1") Die("the counters do not add up: " + wrong);
  Print(name, settled, end, std::move(took));
}

}  // namespace weir::bench
