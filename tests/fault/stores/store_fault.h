#pragma once

// What must hold whatever happens to a store: every request is answered in time, nothing leaks, and
// a second after the store is back its limits are exact again.
//
// A process that needs no store gets a load at the same time. The latency of its answers is the
// machine's share: "in time" is relative to it, and delays caused by the machine alone are not
// blamed on the store.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "e2e/stores/nodes.h"
#include "support/check_load.h"
#include "support/http_client.h"
#include "support/wait.h"

namespace weir::test {

class StoreFault {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kLimit = 100;
  static constexpr std::chrono::milliseconds kTimeout{250};
  static constexpr std::chrono::milliseconds kSlack{50};

  explicit StoreFault(const std::string& store)
      : nodes_(2, store, R"(
policies:
  - name: hot
    match: { hot: "*" }
    quota: { fixed_window: { limit: 100, window: 1s } }
    on_store_error: local
)",
               {"--store-timeout", "250ms", "--threads", "1"}),
        beside_(1, "memory:", "policies: []", {"--threads", "1"}) {
    // Connects everything and sizes every buffer before anything is counted.
    CheckLoad load(nodes_.ports(), kClients, kBody, kPause);
    EXPECT_TRUE(load.AwaitAnswers(200));
    static_cast<void>(load.Stop());
    most_descriptors_.resize(nodes_.size());
  }

  /// Whether some checks must have been decided without the store, or none may have been.
  enum class Felt { kYes, kNo, kPerhaps };

  /// `happens` returns when the store is back.
  void Expect(Felt felt, const std::function<void()>& happens) {
    NoteDescriptors();
    const std::vector<std::size_t> memory = Resident();
    auto load = std::make_unique<Loads>(*this);
    EXPECT_TRUE(load->store.AwaitAnswers(20));
    const std::int64_t begins = WallNanos();
    happens();
    std::int64_t exact_from = WallNanos() + kSecond;
    // A second's grace, the rest of that window, and one whole window.
    std::this_thread::sleep_for(std::chrono::milliseconds(3100));
    Records records = load->Stop();
    ExpectAnswersInTime(records, begins, exact_from);
    const auto degraded = std::count_if(records.store.begin(), records.store.end(),
                                        [](const LoadRecord& one) { return one.degraded; });
    EXPECT_TRUE(felt != Felt::kYes || degraded > 0);
    if (felt == Felt::kNo) ExpectStallsAlone(records);
    // When the machine itself stalls for a moment, checks time out as well. Then another window has
    // to be tried; a store that does not recover fails in every one.
    for (int again = 0; again < kWindows && DegradedFrom(records.store, exact_from) > 0 &&
                        (again < kStalls || HeldUp(records.beside, exact_from) > 0);
         ++again) {
      std::printf("%td checks without the store after the second's grace\n",
                  DegradedFrom(records.store, exact_from));
      load = std::make_unique<Loads>(*this);
      exact_from = WallNanos();
      std::this_thread::sleep_for(std::chrono::milliseconds(2100));
      records = load->Stop();
    }
    ExpectExactFrom(records.store, exact_from);
    ExpectNoLeak(memory);
  }

 private:
  /// What the clients of the nodes observed, and those of the process alongside.
  struct Records {
    std::vector<LoadRecord> store;
    std::vector<LoadRecord> beside;
  };
  struct Loads {
    explicit Loads(const StoreFault& fault)
        : store(fault.nodes_.ports(), kClients, kBody, kPause),
          beside(fault.beside_.ports(), 2, kBody, kPause) {}
    Records Stop() { return {store.Stop(), beside.Stop()}; }

    CheckLoad store;
    CheckLoad beside;
  };

  /// Windows that may have checks without the store; more only if the machine stalled in them.
  static constexpr int kStalls = 3;
  static constexpr int kWindows = 40;
  /// What one stall of the machine can time out: a check of each client.
  static constexpr std::ptrdiff_t kStalled = 8;
  static constexpr std::size_t kClients = 8;
  /// Connections to the store that may be opened in the fault, when they are first needed.
  static constexpr std::size_t kLazy = 1;
  static constexpr std::chrono::microseconds kPause{2000};
  static constexpr const char* kBody = R"({"descriptors":[{"hot":"h"}]})";

  /// Latencies of checks that the fault can have affected, shortest first: answered after it began,
  /// and sent before it ended and a second had passed.
  static std::vector<std::chrono::nanoseconds> Taken(const std::vector<LoadRecord>& records,
                                                     std::int64_t begins, std::int64_t ends) {
    std::vector<std::chrono::nanoseconds> taken;
    for (const LoadRecord& record : records) {
      EXPECT_EQ(record.status, 200);
      if (record.check.answered >= begins && record.check.sent < ends) {
        taken.push_back(record.taken());
      }
    }
    std::sort(taken.begin(), taken.end());
    return taken;
  }

  static void ExpectAnswersInTime(const Records& records, std::int64_t begins, std::int64_t ends) {
    const std::vector<std::chrono::nanoseconds> taken = Taken(records.store, begins, ends);
    const std::vector<std::chrono::nanoseconds> beside = Taken(records.beside, begins, ends);
    ASSERT_GT(taken.size(), 100U);
    ASSERT_FALSE(beside.empty());
    const auto p99 = [](const auto& sorted) { return sorted[sorted.size() * 99 / 100]; };
    EXPECT_LE(p99(taken), kTimeout + kSlack + p99(beside));
    EXPECT_LE(taken.back(), std::chrono::seconds(1) + beside.back());
    const auto millis = [](std::chrono::nanoseconds some) {
      return 1e-6 * static_cast<double>(some.count());
    };
    std::printf(
        "%zu requests: p50 %.1f, p99 %.1f, longest %.1f ms; without a store %.1f, %.1f ms\n",
        taken.size(), millis(taken[taken.size() / 2]), millis(p99(taken)), millis(taken.back()),
        millis(p99(beside)), millis(beside.back()));
  }

  /// Answers without a store that took longer than the machine should need.
  static std::ptrdiff_t HeldUp(const std::vector<LoadRecord>& beside, std::int64_t from) {
    return std::count_if(beside.begin(), beside.end(), [from](const LoadRecord& record) {
      return record.check.answered >= from && record.taken() > kSlack;
    });
  }

  /// Nothing was decided without the store except what timed out in such stalls.
  static void ExpectStallsAlone(const Records& records) {
    std::ptrdiff_t stalled = 0;
    for (const LoadRecord& record : records.store) {
      if (!record.degraded) continue;
      EXPECT_GE(record.taken(), kTimeout);
      ++stalled;
    }
    EXPECT_LE(stalled, kStalled * (1 + HeldUp(records.beside, 0)));
  }

  static std::ptrdiff_t DegradedFrom(const std::vector<LoadRecord>& records, std::int64_t from) {
    return std::count_if(records.begin(), records.end(), [from](const LoadRecord& record) {
      return record.degraded && record.check.answered >= from;
    });
  }

  static void ExpectExactFrom(const std::vector<LoadRecord>& records, std::int64_t from) {
    const std::int64_t window = from / kSecond + 1;  // the first whole one
    std::int64_t least = 0;                          // granted in it for certain
    std::int64_t most = 0;
    std::int64_t asked = 0;
    bool over = false;
    EXPECT_EQ(DegradedFrom(records, from), 0);
    for (const LoadRecord& record : records) {
      const bool began = record.check.sent / kSecond == window;
      const bool ended = record.check.answered / kSecond == window;
      over = over || record.check.sent / kSecond > window;
      asked += began && ended ? 1 : 0;
      if (!record.check.allowed) continue;
      least += began && ended ? 1 : 0;
      most += began || ended ? 1 : 0;
    }
    EXPECT_TRUE(over);
    EXPECT_LE(least, kLimit);
    EXPECT_GE(most, std::min(kLimit, asked));
  }

  // The level before a fault. After an earlier one, a connection that has not been needed yet may
  // still be missing; with it the level is no higher than it was before.
  void NoteDescriptors() {
    const std::vector<std::size_t> now = Descriptors();
    for (std::size_t i = 0; i < now.size(); ++i) {
      most_descriptors_[i] = std::max(most_descriptors_[i], now[i]);
    }
  }

  void ExpectNoLeak(const std::vector<std::size_t>& memory) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      // Connections of clients that have left are closed a moment later.
      EXPECT_TRUE(WaitUntil([&] { return Descriptors()[i] <= most_descriptors_[i] + kLazy; }))
          << "node " << i << ": " << most_descriptors_[i] << " sockets before, " << Descriptors()[i]
          << " after";
      EXPECT_LE(Resident()[i], memory[i] + (std::size_t{16} << 20U)) << "node " << i;
      EXPECT_TRUE(nodes_[i].process().running());
    }
  }

  /// The number of sockets of each node.
  std::vector<std::size_t> Descriptors() {
    std::vector<std::size_t> counts;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      // Some of the embedded database's files are opened when first needed, at any
      // time.
      std::size_t sockets = 0;
      for (const auto& descriptor : std::filesystem::directory_iterator(
               "/proc/" + std::to_string(nodes_[i].process().pid()) + "/fd")) {
        std::error_code gone;
        const std::string what = std::filesystem::read_symlink(descriptor.path(), gone);
        sockets += what.starts_with("socket:") ? 1 : 0;
      }
      counts.push_back(sockets);
    }
    return counts;
  }

  std::vector<std::size_t> Resident() {
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::ifstream statm("/proc/" + std::to_string(nodes_[i].process().pid()) + "/statm");
      std::size_t total = 0;
      std::size_t resident = 0;
      statm >> total >> resident;
      sizes.push_back(resident * 4096);
    }
    return sizes;
  }

  Nodes nodes_;
  Nodes beside_;
  std::vector<std::size_t> most_descriptors_;
};

}  // namespace weir::test
