#include "store/guard/herald.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "store/guard/guard.h"
#include "support/wait.h"

namespace weir::store::guard {
namespace {

using namespace std::chrono_literals;

/// What was sent, message by message.
class Sent {
 public:
  void Add(const std::string& message) {
    const auto hashes = ReadHashes(message);
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(hashes.has_value());
    messages_.push_back(*hashes);
  }
  std::size_t messages() const {
    const std::lock_guard lock(mutex_);
    return messages_.size();
  }
  std::multiset<std::uint64_t> hashes() const {
    const std::lock_guard lock(mutex_);
    std::multiset<std::uint64_t> all;
    for (const auto& message : messages_) all.insert(message.begin(), message.end());
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::vector<std::uint64_t>> messages_;
};

TEST(Herald, TheFirstWordGoesOutAtOnce) {
  Sent sent;
  Herald herald(1h, [&sent](const std::string& message) { sent.Add(message); });
  const std::uint64_t hash = 7;
  herald.Tell({&hash, 1});
  EXPECT_TRUE(test::WaitUntil([&] { return sent.messages() == 1; }));
}

TEST(Herald, WhatComesWithinTheIntervalGoesTogetherAndOnce) {
  Sent sent;
  Herald herald(1s, [&sent](const std::string& message) { sent.Add(message); });
  const std::uint64_t first = 1'000'000;
  herald.Tell({&first, 1});
  ASSERT_TRUE(test::WaitUntil([&] { return sent.messages() == 1; }));
  // 1,000 hashes, each ten times: 1,000 / 256 = 3.9, so 4 messages.
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t hash = 0; hash < 1000; ++hash) herald.Tell({&hash, 1});
  }
  ASSERT_TRUE(test::WaitUntil([&] { return sent.hashes().size() >= 1001; }));
  EXPECT_EQ(sent.hashes().size(), 1001U);
  EXPECT_EQ(sent.messages(), 5U);
}

TEST(Herald, TheSameKeyIsToldAgainInTheNextInterval) {
  Sent sent;
  Herald herald(1ms, [&sent](const std::string& message) { sent.Add(message); });
  const std::uint64_t hash = 7;
  herald.Tell({&hash, 1});
  ASSERT_TRUE(test::WaitUntil([&] { return sent.hashes().count(hash) == 1; }));
  herald.Tell({&hash, 1});
  EXPECT_TRUE(test::WaitUntil([&] { return sent.hashes().count(hash) == 2; }));
}

TEST(Herald, WhatWaitsIsBounded) {
  Sent sent;
  Herald herald(200ms, [&sent](const std::string& message) { sent.Add(message); });
  const std::uint64_t first = 1'000'000'000;
  herald.Tell({&first, 1});
  ASSERT_TRUE(test::WaitUntil([&] { return sent.messages() == 1; }));
  std::vector<std::uint64_t> many(Herald::kMaxPending + 1000);
  std::iota(many.begin(), many.end(), 0);
  herald.Tell(many);
  ASSERT_TRUE(test::WaitUntil([&] { return sent.hashes().size() > Herald::kMaxPending; }));
  EXPECT_EQ(sent.hashes().size(), Herald::kMaxPending + 1);
}

}  // namespace
}  // namespace weir::store::guard
