#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "slots/postgres/slot_store.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/slot_store_client.h"
#include "support/temp_dir.h"
#include "support/wait.h"

// Four processes with a hundred threads each feed one PostgreSQL, all requesting one time: 100,000
// requests, of which 10,000 repeat an event that another process requests.

namespace weir::slots {
namespace {

constexpr int kProcesses = 4;
constexpr int kThreads = 100;
constexpr int kOwnEvents = 22'500;  // and 2,500 of the neighbour's
constexpr int kDistinct = kProcesses * kOwnEvents;
constexpr int kMax = 100;
constexpr Millis kNoon = 1'748'779'200'000;
constexpr Millis kWindow = 4'000;

class ManyProcesses : public testing::Test {
 protected:
  ManyProcesses() : store_({.url = server_.url()}), client_(store_) {
    client_.Put({.name = "pay", .window_size = kWindow, .max_per_window = kMax});
  }

  std::string OutOf(int index) const { return (dir_ / ("out" + std::to_string(index))).string(); }

  std::unique_ptr<test::ChildProcess> Start(int index) {
    return std::make_unique<test::ChildProcess>(std::vector<std::string>{
        test::BuildFolder() + "/slots_feeder", server_.url(), std::to_string(index),
        std::to_string(kProcesses), std::to_string(kThreads), std::to_string(kOwnEvents),
        OutOf(index)});
  }

  int Answered(int index) const {
    std::ifstream in(OutOf(index));
    int lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    return lines;
  }

  // However often and by whichever process an event was answered, it has one slot, which exists.
  void CheckAnswers() {
    std::map<std::string, std::string> answers;
    for (int index = 0; index < kProcesses; ++index) {
      std::ifstream in(OutOf(index));
      std::string event;
      for (std::string rest; in >> event && std::getline(in, rest);) {
        const auto [first, is_new] = answers.try_emplace(event, rest);
        ASSERT_EQ(first->second, rest) << event << " was answered twice, differently";
      }
    }
    std::istringstream stored(
        server_.Query("SELECT event_id || ' ' || window_start || ' ' || scheduled_time FROM "
                      "rate_limit_event_slot"));
    std::map<std::string, std::string> rows;
    std::string event;
    for (std::string rest; stored >> event && std::getline(stored, rest);) rows[event] = rest;
    for (const auto& [answered, slot] : answers) {
      const auto row = rows.find(answered);
      ASSERT_NE(row, rows.end()) << answered << " was answered and is not there";
      ASSERT_EQ(row->second, slot) << answered;
    }
  }

  void CheckWindows(int slots) {
    const Findings findings = client_.Verify();
    EXPECT_EQ(findings.problems, 0);
    for (const std::string& example : findings.examples) ADD_FAILURE() << example;
    EXPECT_EQ(findings.slots, slots);
    Millis last = 0;
    for (const WindowLoad& window : client_.Windows("pay")) {
      EXPECT_LE(window.count, kMax);
      if (window.count > 0) last = window.start;
    }
    // 90,000 / 100 = 900 windows; beyond that at most what the 16 connections held at the end, each
    // a batch of up to 100 events, so two windows.
    if (slots == kDistinct) {
      EXPECT_LE((last - kNoon) / kWindow, 900 + 16 * 2);
    }
    const std::string log = server_.log();
    EXPECT_EQ(log.find("deadlock"), std::string::npos) << log.substr(0, 4'000);
  }

  test::PostgresServer server_{{"deadlock_timeout=200ms"}};
  test::TempDir dir_;
  postgres::PostgresSlotStore store_;
  test::SlotStoreClient client_;
};

TEST_F(ManyProcesses, GiveEveryEventOneSlotAndNoWindowTooMany) {
  std::vector<std::unique_ptr<test::ChildProcess>> feeders;
  for (int i = 0; i < kProcesses; ++i) feeders.push_back(Start(i));
  for (auto& feeder : feeders) {
    EXPECT_EQ(feeder->Wait(std::chrono::minutes(8)), 0) << feeder->error_output();
  }
  for (int i = 0; i < kProcesses; ++i) EXPECT_EQ(Answered(i), 25'000);
  CheckAnswers();
  CheckWindows(kDistinct);
}

TEST_F(ManyProcesses, LoseNothingWhenBackendsAndProcessesAreKilled) {
  std::vector<std::unique_ptr<test::ChildProcess>> feeders;
  for (int i = 0; i < kProcesses; ++i) feeders.push_back(Start(i));
  int terminated = 0;
  for (int round = 0; round < 4; ++round) {
    const int before = Answered(0);
    ASSERT_TRUE(
        test::WaitUntil([&] { return Answered(0) > before + 500 || !feeders[0]->running(); }));
    terminated += server_.TerminateBackends();
  }
  EXPECT_GT(terminated, 0);
  for (int victim : {1, 2}) {
    ASSERT_TRUE(test::WaitUntil([&] {
      return Answered(victim) > 2'000 || !feeders[static_cast<std::size_t>(victim)]->running();
    }));
    EXPECT_EQ(feeders[static_cast<std::size_t>(victim)]->Kill(), 128 + SIGKILL)
        << "it should have died in mid-feed";
  }
  for (int survivor : {0, 3}) {
    EXPECT_EQ(feeders[static_cast<std::size_t>(survivor)]->Wait(std::chrono::minutes(8)), 0)
        << feeders[static_cast<std::size_t>(survivor)]->error_output();
  }
  CheckAnswers();
  EXPECT_EQ(client_.Verify().problems, 0) << "half-done work is left behind";
  // They start again from the beginning; the answers they had received stay.
  for (int victim : {1, 2}) {
    auto again = Start(victim);
    EXPECT_EQ(again->Wait(std::chrono::minutes(8)), 0) << again->error_output();
  }
  CheckAnswers();
  CheckWindows(kDistinct);
}

TEST_F(ManyProcesses, LoseNothingWhenTheServerCrashes) {
  auto feeder = Start(0);
  ASSERT_TRUE(test::WaitUntil([&] { return Answered(0) > 3'000 || !feeder->running(); }));
  server_.Crash();
  server_.Start();
  feeder->Kill();
  ASSERT_TRUE(test::WaitUntil([&] {
    try {
      return client_.Verify().problems == 0;
    } catch (const std::runtime_error&) {
      return false;  // not reconnected yet
    }
  }));
  CheckAnswers();
}

}  // namespace
}  // namespace weir::slots
