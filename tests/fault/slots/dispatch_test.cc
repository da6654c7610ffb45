#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "drivers/sqlite/database.h"
#include "slots/postgres/slot_store.h"
#include "slots/sqlite/slot_store.h"
#include "slots/window.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/slot_store_client.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

// Dispatchers that are killed and a target that fails, counted at the receiver. The short form
// is a test; `./dev soak slots EVENTS` is the long one: two thousand a second, the target down for
// a minute, and the lateness must be small while nothing is broken.

namespace weir::slots {
namespace {

using namespace std::chrono_literals;

constexpr Millis kWindow = 500;

Millis Now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The number of events in the long form; 0: this is the short form.
int LongForm() {
  const char* const given = std::getenv("WEIR_DISPATCH_EVENTS");
  return given != nullptr ? std::atoi(given) : 0;
}

/// The maximum of events that a dispatcher may have claimed at a time.
int InHand() { return LongForm() > 0 ? 1'000 : 400; }

struct Seen {
  int times = 0;
  int marked = 0;  // of these, marked as redelivered
};

/// The bank: a webhook that records when each event arrived. Thread-safe.
class Bank {
 public:
  Bank() : server_([this](test::TcpConnection& connection) { Serve(connection); }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()) + "/pay"; }
  /// While it is away, it answers 503, closes connections and hangs, in turn.
  void SetAway(bool away) { away_ = away; }

  std::size_t distinct() const {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }
  std::map<std::string, Seen> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  std::map<Millis, int> windows() const {
    const std::lock_guard lock(mutex_);
    return windows_;
  }
  int refused() const { return refused_; }
  /// The 99th percentile of the lateness in milliseconds, of the deliveries so far.
  Millis LateP99() const {
    const std::lock_guard lock(mutex_);
    if (late_.empty()) return 0;
    std::vector<Millis> late = late_;
    const auto at = static_cast<std::ptrdiff_t>(late.size() * 99 / 100);
    std::nth_element(late.begin(), late.begin() + at, late.end());
    return late[static_cast<std::size_t>(at)];
  }
  /// The smallest lateness, below 0 if an event arrived before its time.
  Millis Earliest() const {
    const std::lock_guard lock(mutex_);
    return late_.empty() ? 0 : *std::min_element(late_.begin(), late_.end());
  }

 private:
  void Serve(test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      const std::size_t length = head.find("Content-Length: ");
      const std::string body = connection.Read(std::stoul(head.substr(length + 16)));
      if (away_) {
        const int way = refused_++ % 3;
        if (way == 1) return;
        if (way == 2) connection.Read(1);  // until the dispatcher gives up
        connection.Send("HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n");
        continue;
      }
      Note(head, body);
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  }

  void Note(const std::string& head, const std::string& body) {
    const std::size_t key = head.find("Idempotency-Key: ") + 17;
    const std::string event = head.substr(key, head.find('\r', key) - key);
    const std::lock_guard lock(mutex_);
    const Millis now = Now();
    ++windows_[WindowOf(now, kWindow)];
    const std::size_t scheduled = body.find("\"scheduledTime\":\"") + 17;
    late_.push_back(now -
                    *ParseInstant(body.substr(scheduled, body.find('"', scheduled) - scheduled)));
    Seen& one = seen_[event];
    ++one.times;
    if (head.find("Weir-Redelivered: true") != std::string::npos) ++one.marked;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Seen> seen_;
  std::map<Millis, int> windows_;
  std::vector<Millis> late_;
  std::atomic<bool> away_{false};
  std::atomic<int> refused_{0};
  test::TcpServer server_;
};

std::unique_ptr<test::ChildProcess> Start(const std::string& store, const Bank& bank,
                                          const std::string& name) {
  return std::make_unique<test::ChildProcess>(std::vector<std::string>{
      test::Program(), "dispatch", "--store", store, "--config", "pay", "--webhook", bank.url(),
      "--lease", "4", "--delivery-timeout", "1.5", "--workers", "8", "--in-hand",
      std::to_string(InHand()), "--name", name});
}

class Dispatch : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "postgres") {
      server_ = std::make_unique<test::PostgresServer>();
      url_ = server_->url();
      store_ = std::make_unique<postgres::PostgresSlotStore>(postgres::Options{.url = url_});
    } else {
      url_ = "sqlite:" + (dir_ / "weir.db").string();
      database_ = *weir::sqlite::Database::Open({.path = (dir_ / "weir.db").string()});
      store_ = *sqlite::SqliteSlotStore::Open(*database_);
    }
    client_ = std::make_unique<test::SlotStoreClient>(*store_);
  }

  void Feed(int count, std::int64_t cap, Millis begin) {
    client_->Put({.name = "pay", .window_size = kWindow, .max_per_window = cap});
    std::vector<Ask> asks;
    for (int i = 0; i < count; ++i) {
      asks.push_back(client_->Ask("e" + std::to_string(i), "pay", begin));
      if (asks.size() == kMaxBatch) {
        client_->Assign(std::move(asks));
        asks.clear();
      }
    }
    if (!asks.empty()) client_->Assign(std::move(asks));
  }

  /// Whether one of these dispatchers had claimed the event when it was killed.
  bool WasLost(const std::string& event, const std::set<std::string>& killed) {
    const std::vector<Change> history = client_->Look(event)->history;
    return std::any_of(history.begin(), history.end(), [&](const Change& change) {
      return change.what == "lease-ended" && killed.contains(change.detail);
    });
  }

  test::TempDir dir_;
  std::unique_ptr<test::PostgresServer> server_;
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<SlotStore> store_;
  std::unique_ptr<test::SlotStoreClient> client_;
  std::string url_;
};

TEST_P(Dispatch, EverythingIsDeliveredUnderTheCapThroughKillsAndAnOutage) {
  const bool is_long = LongForm() > 0;
  const int events = is_long ? LongForm() : 2'000;
  // Forty windows, twenty seconds; the long form handles two thousand a second.
  const std::int64_t cap = is_long ? 1'000 : std::max(50, events / 40);
  Feed(events, cap, WindowOf(Now(), kWindow) - 20 * kWindow);  // a part is overdue immediately
  Bank bank;
  const bool shared = GetParam() == "postgres";
  std::vector<std::unique_ptr<test::ChildProcess>> dispatchers;
  for (int i = 0; i < (shared ? 4 : 1); ++i) {
    dispatchers.push_back(Start(url_, bank, "d" + std::to_string(i)));
  }
  const auto reached = [&](int part) {
    return test::WaitUntil(
        [&] { return bank.distinct() >= static_cast<std::size_t>(events) * part / 10; },
        is_long ? 3600s : 300s);
  };
  ASSERT_TRUE(reached(2)) << dispatchers[0]->error_output();
  dispatchers[0]->Kill();
  dispatchers[0] = Start(url_, bank, "again");
  ASSERT_TRUE(reached(4));
  bank.SetAway(true);
  ASSERT_TRUE(test::WaitUntil([&] { return bank.refused() >= 6; }));
  std::this_thread::sleep_for(is_long ? 60s : 2s);  // the outage itself
  bank.SetAway(false);
  ASSERT_TRUE(reached(6)) << bank.distinct();
  dispatchers.back()->Kill();
  if (!shared) dispatchers.back() = Start(url_, bank, "third");
  ASSERT_TRUE(reached(10)) << bank.distinct() << dispatchers[0]->error_output();
  for (auto& dispatcher : dispatchers) dispatcher->Terminate();

  int fullest = 0;
  for (const auto& [window, count] : bank.windows()) fullest = std::max(fullest, count);
  EXPECT_LE(fullest, cap) << "counted at the receiver";
  int twice = 0;
  for (const auto& [event, seen] : bank.seen()) {
    if (seen.times == 1) continue;
    ++twice;
    EXPECT_LE(seen.times - seen.marked, 1) << event << " came again without a mark";
    EXPECT_TRUE(WasLost(event, {"d0", shared ? "d3" : "again"}))
        << event << " came again and was not claimed at a kill";
  }
  std::cout << "delivered " << bank.distinct() << " events, cap " << cap << ", fullest window "
            << fullest << ", windows " << bank.windows().size() << ", delivered twice " << twice
            << ", refused by the target " << bank.refused() << '\n';
  ASSERT_TRUE(test::WaitUntil([&] { return client_->Backlogs(0).at(0).due == 0; }));
  for (int i = 0; i < events; i += 97) {
    EXPECT_EQ(client_->Look("e" + std::to_string(i))->state, State::kDone);
  }
  EXPECT_EQ(client_->Verify().problems, 0);
}

// The short form of a database failure: it is killed and restarted. Dispatchers
// have claims and reports under way whose answers they never get.
TEST_P(Dispatch, EverythingIsDeliveredUnderTheCapThoughTheDatabaseIsKilled) {
  if (GetParam() != "postgres" || LongForm() > 0) GTEST_SKIP();
  constexpr int kEvents = 2'000;
  constexpr int kCap = 50;
  Feed(kEvents, kCap, WindowOf(Now(), kWindow) - 20 * kWindow);
  Bank bank;
  auto first = Start(url_, bank, "d0");
  auto second = Start(url_, bank, "d1");
  for (const std::size_t part : {1U, 3U, 5U}) {
    ASSERT_TRUE(test::WaitUntil([&] { return bank.distinct() >= kEvents * part / 10; }, 120s))
        << first->error_output();
    server_->Crash();
    server_->Start();
  }
  ASSERT_TRUE(test::WaitUntil([&] { return bank.distinct() == kEvents; }, 180s))
      << bank.distinct() << first->error_output();
  ASSERT_TRUE(test::WaitUntil([&] { return client_->Backlogs(0).at(0).claimed == 0; }, 60s));
  first->Terminate();
  second->Terminate();
  for (const auto& [window, count] : bank.windows()) EXPECT_LE(count, kCap) << window;
  for (const auto& [event, seen] : bank.seen()) {
    EXPECT_LE(seen.times - seen.marked, 1) << event << " came again without a mark";
  }
  for (int i = 0; i < kEvents; i += 97) {
    EXPECT_EQ(client_->Look("e" + std::to_string(i))->state, State::kDone);
  }
  EXPECT_EQ(client_->Verify().problems, 0);
}

TEST_P(Dispatch, WhenNothingIsBrokenEventsComeAtTheirTimes) {
  const bool is_long = LongForm() > 0;
  const int events = is_long ? 20'000 : 200;
  const int cap = is_long ? 500 : 50;
  Feed(0, cap, 0);  // only the config, so that the dispatcher has something to claim
  Bank bank;
  auto dispatcher = Start(url_, bank, "alone");
  ASSERT_TRUE(dispatcher->WaitForError("dispatcher started"));
  Feed(events, cap, Now() + 2'000);
  ASSERT_TRUE(
      test::WaitUntil([&] { return bank.distinct() == static_cast<std::size_t>(events); }, 300s))
      << dispatcher->error_output();
  dispatcher->Terminate();
  std::cout << "lateness p99 " << bank.LateP99() << " ms of " << events << " events\n";
  // On a slow machine events are late, which must not fail a short test.
  if (is_long) {
    EXPECT_LE(bank.LateP99(), 50);
  }
  EXPECT_GE(bank.Earliest(), 0) << "came before its time";
}

INSTANTIATE_TEST_SUITE_P(Stores, Dispatch, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
