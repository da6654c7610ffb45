#include "drivers/postgres/migration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "slots/postgres/sql.h"
#include "slots/sqlite/sql.h"
#include "store_fixture.h"
#include "support/paths.h"

// Databases from before states existed are migrated, and nothing in them is executed.

namespace weir::slots {
namespace {

constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z

// After the config, whose columns differ between the stores.
std::string WithOldRows(std::string sql) {
  sql +=
      "INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start, slot_count, cap) "
      "VALUES (1, 4000, 1748779200000, 1, 10);"
      "INSERT INTO rate_limit_event_slot(event_id, config_id, window_ms, window_start, "
      "scheduled_time, requested_time) "
      "VALUES ('old', 1, 4000, 1748779200000, 1748779200007, 1748779200000);";
  return sql;
}

void CheckOldEvent(test::SlotStoreClient client) {
  client.Put({.name = "pay", .window_size = 4'000, .max_per_window = 10});
  const Event old = *client.Look("old");
  EXPECT_EQ(old.state, State::kExternal);
  EXPECT_EQ(old.slot.scheduled, kNoon + 7);
  Ask again = client.Ask("old", "pay", kNoon);
  EXPECT_EQ(client.Assign(again).outcome, Outcome::kExisting);
  again.payload = "10 EUR";  // its payload was not stored
  EXPECT_EQ(client.Assign(again).outcome, Outcome::kExisting);
  // Slots used until now were executed by other means.
  EXPECT_TRUE(client.Claim({.config = "pay", .max = 10, .now = kNoon + 60'000}).events.empty());
  EXPECT_EQ(client.Reschedule({.event_id = "old", .requested = kNoon + 60'000})->outcome,
            Outcome::kNew);
  EXPECT_EQ(client.Claim({.config = "pay", .max = 10, .now = kNoon + 64'000}).events.size(), 1U);
  EXPECT_EQ(client.Verify().problems, 0);
}

TEST(SlotMigration, SqliteEventsOfBeforeAreExternal) {
  const test::TempDir dir;
  auto database = weir::sqlite::Database::Open({.path = (dir / "weir.db").string()});
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->Migrate("slots", sqlite::Migrations().first(1)).ok());
  const Status filled = (*database)->WriteAndWait([](weir::sqlite::Connection& connection) {
    const std::string sql = WithOldRows(
        "INSERT INTO rate_limit_config VALUES (1, 'pay', 1, 4000, 10, 100, 100, 1, 0);");
    return connection.Execute(sql.c_str());
  });
  ASSERT_TRUE(filled.ok()) << filled.error().message;
  auto store = sqlite::SqliteSlotStore::Open(**database);
  ASSERT_TRUE(store.ok()) << store.error().message;
  CheckOldEvent(test::SlotStoreClient(**store));
}

TEST(SlotMigration, PostgresEventsOfBeforeAreExternal) {
  test::PostgresServer server;
  ASSERT_TRUE(weir::postgres::Migrate(server.url(), "slots", postgres::Migrations().first(4)).ok());
  server.Query(
      WithOldRows("INSERT INTO rate_limit_config VALUES (1, 'pay', 1, 4000, 10, 100, 100, '{}', "
                  "'{}', true, 0);"));
  postgres::PostgresSlotStore store({.url = server.url()});
  CheckOldEvent(test::SlotStoreClient(store));
}

// Functions of 0.1 that later steps replace are no longer created by the first steps.
constexpr const char* kFunctionsOfOld =
    "CREATE FUNCTION weir_slot_place(int, bigint, bigint, bigint, bigint, text, bigint, bigint,"
    " bigint[]) RETURNS bigint[] LANGUAGE sql AS 'SELECT NULL::bigint[]';"
    "CREATE FUNCTION weir_slots_assign(text, text[], bigint[], text[], bigint[])"
    " RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';"
    "CREATE FUNCTION weir_slots_cancel(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';"
    "CREATE FUNCTION weir_slots_reschedule(text, text, bigint, bigint)"
    " RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';"
    "CREATE FUNCTION weir_slots_put_config(text, bigint, bigint, bigint, bigint, text[], bigint[],"
    " bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';";

TEST(SlotMigration, PostgresFunctionsOfBeforeAreReplaced) {
  test::PostgresServer server;
  ASSERT_TRUE(weir::postgres::Migrate(server.url(), "slots", postgres::Migrations().first(4)).ok());
  server.Query(kFunctionsOfOld);
  const Status made = weir::postgres::Migrate(server.url(), "slots", postgres::Migrations());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(server.Query("SELECT string_agg(proname, ' ') FROM (SELECT proname FROM pg_proc"
                         " WHERE proname LIKE 'weir_slot%' GROUP BY 1 HAVING count(*) > 1) twice"),
            "");
  EXPECT_EQ(server.Query("SELECT count(*) FROM pg_proc WHERE proname = 'weir_slots_reschedule'"),
            "0");
}

// As released with 0.2; later steps replace them.
constexpr const char* kFunctionsOfClaims =
    "CREATE FUNCTION weir_slots_assign(p_name text, p_event text[], p_requested bigint[],"
    " p_earliest bigint[], p_tenant text[], p_random bigint[], p_payload text[], p_version int,"
    " p_from bigint[], p_until bigint[]) RETURNS TABLE(r_ord bigint, r_outcome int, r_config text,"
    " r_tenant text, r_requested bigint, r_window bigint, r_scheduled bigint)"
    " LANGUAGE plpgsql AS 'BEGIN END';"
    "CREATE FUNCTION weir_slot_room(p_id int, p_size bigint, p_max bigint, p_window bigint)"
    " RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';"
    "CREATE FUNCTION weir_slots_claim(p_name text, p_max int, p_lease bigint, p_ahead bigint,"
    " p_by text, p_now bigint, p_random bigint, p_closing bigint DEFAULT 9223372036854775807)"
    " RETURNS TABLE(r_event text, r_tenant text, r_requested bigint, r_window bigint,"
    " r_scheduled bigint, r_attempt int, r_execute bigint, r_lease bigint, r_payload text,"
    " r_now bigint, r_capped boolean) LANGUAGE plpgsql AS 'BEGIN END';"
    "CREATE FUNCTION weir_slots_cancel(p_event text) RETURNS TABLE(r_config text, r_tenant text,"
    " r_requested bigint, r_window bigint, r_scheduled bigint) LANGUAGE plpgsql AS 'BEGIN END';"
    "CREATE FUNCTION weir_slot_move(p_event text, p_name text, p_requested bigint,"
    " p_earliest bigint, p_random bigint, p_version int, p_from int[], p_attempt int, p_what text,"
    " p_detail text, p_opens bigint[], p_closes bigint[], p_over bigint DEFAULT 0,"
    " p_now bigint DEFAULT 0) RETURNS TABLE(r_config text, r_tenant text, r_requested bigint,"
    " r_window bigint, r_scheduled bigint) LANGUAGE plpgsql AS 'BEGIN END';"
    "CREATE FUNCTION weir_slots_drop_archived(p_before bigint, p_limit int) RETURNS bigint"
    " LANGUAGE sql AS 'SELECT 0::bigint';";

TEST(SlotMigration, PostgresFunctionsOfClaimsAreReplaced) {
  test::PostgresServer server;
  ASSERT_TRUE(
      weir::postgres::Migrate(server.url(), "slots", postgres::Migrations().first(13)).ok());
  server.Query(kFunctionsOfClaims);
  server.Query(
      WithOldRows("INSERT INTO rate_limit_config VALUES (1, 'pay', 1, 4000, 10, 100, 100, '{}', "
                  "'{}', true, 0);") +
      "UPDATE rate_limit_event_slot SET state = 5;");
  postgres::PostgresSlotStore store({.url = server.url()});
  CheckOldEvent(test::SlotStoreClient(store));
  EXPECT_EQ(server.Query("SELECT string_agg(proname, ' ') FROM (SELECT proname FROM pg_proc"
                         " WHERE proname LIKE 'weir_slot%' GROUP BY 1 HAVING count(*) > 1) twice"),
            "");
}

std::string Text(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A database created by the steps of 0.2.0, with an event in it.
std::string MakeReleased(test::PostgresServer& server, const std::string& name) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(
           test::SourcePath("tests/conformance/slots/released/0.2.0"))) {
    files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(Text(file));
  std::vector<const char*> steps;
  for (const std::string& text : texts) steps.push_back(text.c_str());
  const std::string url = server.CreateDatabase(name);
  const Status made = weir::postgres::Migrate(url, "slots", steps);
  EXPECT_TRUE(made.ok()) << made.error().message;
  server.Query(WithOldRows("INSERT INTO rate_limit_config VALUES (1, 'pay', 1, 4000, 10, 100, 100, "
                           "'{}', '{}', true, 0);") +
                   "UPDATE rate_limit_event_slot SET state = 5;",
               name);
  return url;
}

/// Everything that the steps create, as text.
std::string Contents(test::PostgresServer& server, const std::string& name) {
  return server.Query(
      "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'weir_slot%' "
      "ORDER BY oid::regprocedure::text;"
      "SELECT table_name, column_name, data_type, is_nullable, column_default "
      "FROM information_schema.columns WHERE table_name LIKE 'rate_limit_%' ORDER BY 1, 2;"
      "SELECT indexdef FROM pg_indexes WHERE tablename LIKE 'rate_limit_%' ORDER BY 1",
      name);
}

void CheckBroughtUpToDate(test::PostgresServer& server, const std::string& url,
                          const std::string& name) {
  postgres::PostgresSlotStore store({.url = url});
  CheckOldEvent(test::SlotStoreClient(store));
  const Status made =
      weir::postgres::Migrate(server.CreateDatabase("fresh"), "slots", postgres::Migrations());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(Contents(server, name), Contents(server, "fresh"));
}

TEST(SlotMigration, PostgresDatabasesOf02AreAsNewOnesAfterwards) {
  test::PostgresServer server;
  CheckBroughtUpToDate(server, MakeReleased(server, "released"), "released");
}

TEST(SlotMigration, TheFirstPostgresDatabasesOf02AreAsNewOnesAfterwards) {
  test::PostgresServer server;
  const std::string url = MakeReleased(server, "released");
  server.Query(Text(test::SourcePath("tests/conformance/slots/released/0.2.0-first.sql")),
               "released");
  CheckBroughtUpToDate(server, url, "released");
}

}  // namespace
}  // namespace weir::slots
