#pragma once

// What must hold whatever happens to a store: every request is answered in time, nothing leaks, and
// a second after the store is back its limits are exact again.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
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
               {"--store-timeout", "250ms", "--threads", "1"}) {
    // Everything is connected and every buffer has its size before anything is counted.
    CheckLoad load(nodes_.ports(), kClients, kBody, kPause);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    static_cast<void>(load.Stop());
  }

  /// Whether some checks must have been decided without the store, or none may have been.
  enum class Felt { kYes, kNo, kPerhaps };

  /// `happens` returns when the store is back.
  void Expect(Felt felt, const std::function<void()>& happens) {
    const std::vector<std::size_t> fds = Descriptors();
    const std::vector<std::size_t> memory = Resident();
    CheckLoad load(nodes_.ports(), kClients, kBody, kPause);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    happens();
    const std::int64_t exact_from = WallNanos() + kSecond;
    // A second's grace, what is left of that window, and one whole window.
    std::this_thread::sleep_for(std::chrono::milliseconds(3100));
    const std::vector<LoadRecord> records = load.Stop();
    ExpectAnswersInTime(records);
    const auto degraded = std::count_if(records.begin(), records.end(),
                                        [](const LoadRecord& one) { return one.degraded; });
    EXPECT_TRUE(felt != Felt::kYes || degraded > 0);
    EXPECT_TRUE(felt != Felt::kNo || degraded == 0) << degraded;
    ExpectExactFrom(records, exact_from);
    ExpectNoLeak(fds, memory);
  }

 private:
  static constexpr std::size_t kClients = 8;
  static constexpr std::chrono::microseconds kPause{2000};
  static constexpr const char* kBody = R"({"descriptors":[{"hot":"h"}]})";

  static void ExpectAnswersInTime(const std::vector<LoadRecord>& records) {
    std::vector<std::chrono::nanoseconds> taken;
    for (const LoadRecord& record : records) {
      ASSERT_EQ(record.status, 200);
      taken.push_back(record.taken());
    }
    ASSERT_GT(taken.size(), 100U);
    const auto p99 = taken.begin() + static_cast<std::ptrdiff_t>(taken.size() * 99 / 100);
    std::nth_element(taken.begin(), p99, taken.end());
    EXPECT_LE(*p99, kTimeout + kSlack);
    EXPECT_LE(*std::max_element(taken.begin(), taken.end()), std::chrono::seconds(1));
  }

  static void ExpectExactFrom(const std::vector<LoadRecord>& records, std::int64_t from) {
    const std::int64_t window = from / kSecond + 1;  // the first whole one
    std::int64_t least = 0;                          // granted in it for sure
    std::int64_t most = 0;
    bool over = false;
    for (const LoadRecord& record : records) {
      EXPECT_FALSE(record.degraded && record.check.answered >= from)
          << (record.check.answered - from) / 1'000'000 << " ms after the second's grace";
      const bool began = record.check.sent / kSecond == window;
      const bool ended = record.check.answered / kSecond == window;
      over = over || record.check.sent / kSecond > window;
      if (!record.check.allowed) continue;
      least += began && ended ? 1 : 0;
      most += began || ended ? 1 : 0;
    }
    EXPECT_TRUE(over);
    EXPECT_LE(least, kLimit);
    EXPECT_GE(most, kLimit);
  }

  void ExpectNoLeak(const std::vector<std::size_t>& fds, const std::vector<std::size_t>& memory) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      // Connections of clients that have gone are closed a moment later.
      EXPECT_TRUE(WaitUntil([&] { return Descriptors()[i] <= fds[i] + 1; }))
          << "node " << i << ": " << fds[i] << " descriptors before, " << Descriptors()[i]
          << " after";
      EXPECT_LE(Resident()[i], memory[i] + (std::size_t{16} << 20U)) << "node " << i;
      EXPECT_TRUE(nodes_[i].process().running());
    }
  }

  std::vector<std::size_t> Descriptors() {
    std::vector<std::size_t> counts;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::filesystem::directory_iterator all(
          "/proc/" + std::to_string(nodes_[i].process().pid()) + "/fd");
      counts.push_back(static_cast<std::size_t>(std::distance(begin(all), end(all))));
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
};

}  // namespace weir::test
