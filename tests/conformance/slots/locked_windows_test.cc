#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "slots/execution.h"
#include "store_fixture.h"
#include "support/child_process.h"
#include "support/cutting_proxy.h"
#include "support/ports.h"
#include "support/stopwatch.h"
#include "support/wait.h"

// The behavior of PostgreSQL under the functions: rows locked by others are skipped, searches are
// lookups, and a call is one statement.

namespace weir::slots {
namespace {

constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z
constexpr Millis kWindow = 4'000;
constexpr int kFull = 5'000;  // windows with no room left

/// Another client's transaction that holds the rows of some windows until it is destroyed.
class Foreign {
 public:
  Foreign(const std::string& url, const std::string& windows)
      : psql_({"psql", "-X", "-q", "-d", url, "-c",
               "BEGIN; SELECT 'held' FROM rate_limit_window_counter WHERE window_start IN (" +
                   windows + ") FOR UPDATE; SELECT pg_sleep(120)",
               "-v", "ON_ERROR_STOP=1"}) {}
  ~Foreign() { psql_.Kill(); }

 private:
  test::ChildProcess psql_;
};

class LockedWindows : public StoreTest {
 protected:
  std::string Sql(const std::string& sql) { return Server().Query(sql, database_name()); }

  void Hold(const std::string& windows) {
    holder_ = std::make_unique<Foreign>(Server().url(database_name()), windows);
    ASSERT_TRUE(test::WaitUntil([&] { return Free(windows) == 0; }));
  }

  // A server notices late that a client has gone, so the backend is terminated.
  void LetGo(const std::string& windows, int count) {
    Sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE '%pg_sleep(120)%' AND pid <> pg_backend_pid()");
    holder_.reset();
    ASSERT_TRUE(test::WaitUntil([&] { return Free(windows) == count; }));
  }

  int Free(const std::string& windows) {
    return std::stoi(
        Sql("SELECT count(*) FROM (SELECT FROM rate_limit_window_counter WHERE window_start IN (" +
            windows + ") FOR UPDATE SKIP LOCKED) x"));
  }

  /// A config whose next three windows, all within its headroom, are held: returns their starts.
  std::string HoldTheHeadroom() {
    client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 1, .headroom = 2});
    client().Assign(Asks(1, kNoon));  // full; its successors have no rows yet
    for (int i = 1; i <= 3; ++i) {
      client().Assign(client().Ask("w" + std::to_string(i), "pay", kNoon + i * kWindow));
      client().Cancel("w" + std::to_string(i));  // a row, and open
    }
    std::string windows = std::to_string(kNoon + kWindow);
    for (int i = 2; i <= 3; ++i) windows += "," + std::to_string(kNoon + i * kWindow);
    Hold(windows);
    return windows;
  }

  std::unique_ptr<Foreign> holder_;
};

TEST_P(LockedWindows, AWindowHeldByAForeignTransactionIsSkippedWithoutWaiting) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 5});
  client().Assign(Asks(1, kNoon));
  Hold(std::to_string(kNoon));
  // The holder sleeps for two minutes; a call that waited for it would hit the statement timeout.
  const auto begun = std::chrono::steady_clock::now();
  const Answer answer = client().Assign(client().Ask("next", "pay", kNoon));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(9));
  EXPECT_EQ(answer.outcome, Outcome::kNew);
  EXPECT_EQ(answer.slot.window_start, kNoon + kWindow);
  LetGo(std::to_string(kNoon), 1);
  EXPECT_EQ(client().Assign(client().Ask("later", "pay", kNoon)).slot.window_start, kNoon);
}

TEST_P(LockedWindows, HeldWindowsUseUpTheHeadroom) {
  const std::string windows = HoldTheHeadroom();
  EXPECT_EQ(client().Assign(client().Ask("x", "pay", kNoon)).outcome, Outcome::kExhausted);
  LetGo(windows, 3);
  EXPECT_EQ(client().Assign(client().Ask("x", "pay", kNoon)).slot.window_start, kNoon + kWindow);
}

// A holder has most likely just been descheduled.
TEST_P(LockedWindows, ThatAreLetGoSoonRefuseNobody) {
  const std::string windows = HoldTheHeadroom();
  Answer answer;
  {
    const std::jthread caller([&] { answer = client().Assign(client().Ask("x", "pay", kNoon)); });
    EXPECT_TRUE(test::WaitUntil([&] {
      return Sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.05)%' "
                 "AND pid <> pg_backend_pid()") != "0";
    }));
    LetGo(windows, 3);
  }
  EXPECT_EQ(answer.outcome, Outcome::kNew);
  EXPECT_EQ(answer.slot.window_start, kNoon + kWindow);
}

// Neither its share nor the end of time will change soon. Other callers wait behind one that is
// retried.
TEST_P(LockedWindows, WhoeverFindsNoRoomForAnotherReasonIsRefusedAtOnce) {
  client().Put({.name = "pay",
                .window_size = kWindow,
                .max_per_window = 2,
                .headroom = 1,
                .fair_windows = 2,
                .tenants = {{"*", 1}, {"acme", 1}}});
  client().Assign(Asks(3, kNoon));
  client().Put({.name = "late", .window_size = kWindow, .max_per_window = 1});
  client().Assign(client().Ask("last", "late", kMaxInstant - kWindow + 1));
  const test::Stopwatch watch;
  EXPECT_EQ(client().Assign(client().Ask("share", "pay", kNoon)).outcome, Outcome::kExhausted);
  EXPECT_EQ(client().Assign(client().Ask("end", "late", kMaxInstant)).outcome, Outcome::kExhausted);
  EXPECT_LT(watch.elapsed(), std::chrono::milliseconds(2500)) << "each pauses for three seconds";
}

TEST_P(LockedWindows, AnEndThatIsToldTwiceAtOnceIsCountedOnce) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 5});
  client().Assign(Asks(3, kNoon));
  const ClaimRequest request{.config = "pay", .max = 3, .lease = 60'000, .now = kNoon + kWindow};
  const Claim claim = client().Claim(request);
  ASSERT_EQ(claim.events.size(), 3U);
  const Finish end{.event_id = claim.events[0].slot.event_id,
                   .attempt = 1,
                   .failed = true,
                   .error = "503",
                   .retry_at = kNoon + 20'000,
                   .now = kNoon + kWindow};
  // Both have read the event, and wait for its window, before either has moved it.
  Hold(std::to_string(kNoon));
  std::vector<Finished> answers;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        postgres::PostgresSlotStore mine(postgres::Options{.url = Server().url(database_name())});
        test::SlotStoreClient teller(mine);
        const Finished answer = teller.Finish({end}).at(0);
        const std::lock_guard lock(mutex);
        answers.push_back(answer);
      });
    }
    EXPECT_TRUE(test::WaitUntil([&] {
      return Sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                 "AND query LIKE '%weir_slots_retry%'") == "2";
    }));
    LetGo(std::to_string(kNoon), 1);
  }
  EXPECT_THAT(answers, testing::UnorderedElementsAre(Finished::kOk, Finished::kAlready));
  EXPECT_EQ(client().Backlogs(kNoon + kWindow).at(0).claimed, 2);
  EXPECT_EQ(client().Look(end.event_id)->history.size(), 1U);
}

TEST_P(LockedWindows, FindingTheFirstOpenWindowIsALookupWhateverIsFull) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 1});
  client().Assign(Asks(kFull, kNoon));
  Sql("ANALYZE rate_limit_window_counter");
  const std::string plan =
      Sql("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) SELECT window_start "
          "FROM rate_limit_window_counter WHERE config_id = 1 AND window_ms = 4000 "
          "AND status = 'OPEN' AND window_start >= " +
          std::to_string(kNoon) + " ORDER BY window_start LIMIT 1");
  EXPECT_THAT(plan, testing::HasSubstr("using rate_limit_window_open"));
  EXPECT_THAT(plan, testing::HasSubstr("rows=1 "));
  EXPECT_THAT(plan, testing::Not(testing::HasSubstr("Rows Removed"))) << plan;
}

TEST_P(LockedWindows, AnAssignmentBehindFullWindowsReadsAFewRows) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 1});
  client().Assign(Asks(kFull, kNoon));
  Sql("ANALYZE rate_limit_window_counter");
  const auto read = [&] {
    // What the server's processes have counted, once they have reported it.
    return std::stoll(
        Sql("SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables "
            "WHERE relname = 'rate_limit_window_counter'"));
  };
  // A session reports when it ends: this one is a separate store, with a fresh one's plans.
  const auto reads_of_one = [&](const std::string& id) {
    const std::string sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '" + database_name() +
        "' AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    const std::string others = Sql(sessions);
    const long long before = read();
    {
      postgres::PostgresSlotStore fresh(postgres::Options{.url = Server().url(database_name())});
      test::SlotStoreClient mine(fresh);
      const Answer answer = mine.Assign(mine.Ask(id, "pay", kNoon));
      EXPECT_EQ(answer.slot.window_start, kNoon + kFull * kWindow);
    }
    EXPECT_TRUE(test::WaitUntil([&] { return Sql(sessions) == others; }));
    return read() - before;
  };
  const long long rows = reads_of_one("behind");
  EXPECT_GE(rows, 1);
  EXPECT_LT(rows, 30) << "of 5,000 full windows";
}

TEST_P(LockedWindows, AnAssignmentIsOneRoundTrip) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 10});
  test::CuttingProxy wire(Server().port());
  postgres::PostgresSlotStore store(postgres::Options{
      .url = "postgres://weir@127.0.0.1:" + std::to_string(wire.port()) + "/" + database_name()});
  test::SlotStoreClient mine(store);
  // The first one on each connection also prepares its statement.
  for (int i = 0; i < 10; ++i) mine.Assign(mine.Ask("warm" + std::to_string(i), "pay", kNoon));
  constexpr int kCalls = 100;
  const int before = wire.round_trips();
  for (int i = 0; i < kCalls; ++i) {
    const Answer answer = mine.Assign(mine.Ask("s" + std::to_string(i), "pay", kNoon));
    EXPECT_EQ(answer.outcome, Outcome::kNew);
  }
  EXPECT_EQ(wire.round_trips() - before, kCalls);
}

// The answer is lost after the commit. If the change were repeated, it would be rejected because
// there is nothing to change: 409 or 404 for something that was done.
TEST_P(LockedWindows, AChangeWhoseAnswerWasLostIsNotToldThatItCannotBeMade) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 10});
  client().Assign(client().Ask("e", "pay", kNoon));
  test::CuttingProxy wire(Server().port());
  postgres::PostgresSlotStore store(postgres::Options{
      .url = "postgres://weir@127.0.0.1:" + std::to_string(wire.port()) + "/" + database_name()});
  test::SlotStoreClient mine(store);
  const auto lost = [&wire, &mine](auto change) {
    mine.Look("e");  // connections are made on first use; only open ones are cut
    std::future<bool> cut = std::async(std::launch::async, [&wire] { return wire.CutReplies(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits for a reply
    std::promise<std::optional<Error>> told;
    change([&told](const auto& result) {
      told.set_value(result.ok() ? std::nullopt : std::optional(result.error()));
    });
    const std::optional<Error> error = told.get_future().get();
    EXPECT_TRUE(cut.get());
    return error;
  };
  const auto expect_unknown = [](const std::optional<Error>& error) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, Code::kDeadlineExceeded) << error->message;
    EXPECT_THAT(error->message, testing::HasSubstr("it is unknown whether the change was made"));
  };
  // Idempotent: repeated, and answered.
  EXPECT_FALSE(lost([&](auto done) { store.Cancel("e", done); }).has_value());
  EXPECT_EQ(client().Look("e")->state, State::kCancelled);
  expect_unknown(lost([&](auto done) { store.Restore({.event_id = "e"}, done); }));
  EXPECT_EQ(client().Look("e")->state, State::kScheduled);
  expect_unknown(lost(
      [&](auto done) { store.Reschedule({.event_id = "e", .requested = kNoon + kWindow}, done); }));
  EXPECT_EQ(client().Look("e")->slot.requested, kNoon + kWindow);
  EXPECT_EQ(client().Look("e")->history.size(), 3U) << "none was made twice";
  mine.Put({.name = "pay", .window_size = kWindow, .max_per_window = 15});
  expect_unknown(lost([&](auto done) {
    store.PutConfig({.name = "pay", .window_size = kWindow, .max_per_window = 20}, done);
  }));
  EXPECT_EQ(client().Versions("pay").size(), 3U);
  expect_unknown(lost([&](auto done) { store.Deactivate("pay", done); }));
  EXPECT_FALSE(client().Get("pay").has_value());
  // With a server that cannot be reached nothing was changed, and the error says so.
  postgres::PostgresSlotStore nowhere(postgres::Options{
      .url = "postgres://weir@127.0.0.1:" + std::to_string(test::FreePort()) + "/none"});
  std::promise<Code> told;
  nowhere.Deactivate("pay", [&told](const Result<bool>& result) {
    told.set_value(result.ok() ? Code::kInternal : result.error().code);
  });
  EXPECT_EQ(told.get_future().get(), Code::kUnavailable);
}

TEST_P(LockedWindows, ClaimingReadsNoFinishedEvents) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 10'000});
  client().Assign(Asks(3'000, kNoon));
  Sql("UPDATE rate_limit_event_slot SET state = 2 WHERE event_id <> 'e7'");
  Sql("VACUUM ANALYZE rate_limit_event_slot");
  const std::string plan =
      Sql("SET enable_seqscan = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT event_id "
          "FROM rate_limit_event_slot WHERE config_id = 1 AND tenant_class = '' AND state = 0 "
          "AND scheduled_time <= 9999999999999 ORDER BY scheduled_time LIMIT 100");
  EXPECT_THAT(plan, testing::HasSubstr("rate_limit_event_due"));
  EXPECT_THAT(plan, testing::Not(testing::HasSubstr("Rows Removed"))) << plan;
}

TEST_P(LockedWindows, AnAssignmentIsOneStatement) {
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 10});
  client().Assign(client().Ask("warm", "pay", kNoon));
  // The server's own transactions have numbers, too, such as updating the statistics of tables of
  // earlier tests.
  Sql("ALTER SYSTEM SET autovacuum = off");
  Sql("SELECT pg_reload_conf()");
  ASSERT_TRUE(test::WaitUntil([&] {
    return Sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'") ==
           "0";
  }));
  constexpr int kCalls = 200;
  const std::string before = Sql("SELECT pg_current_xact_id()");
  for (int i = 0; i < kCalls; ++i) {
    client().Assign(client().Ask("s" + std::to_string(i), "pay", kNoon));
  }
  const std::string after = Sql("SELECT pg_current_xact_id()");
  // Every transaction that writes has a number: one for each call, and one for this query.
  EXPECT_EQ(std::stoll(after) - std::stoll(before), kCalls + 1);
}

INSTANTIATE_TEST_SUITE_P(Stores, LockedWindows, testing::Values("postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
