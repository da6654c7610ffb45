// Many threads, several nodes, one limit: never one too many, and no permit lost.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conformance/store/client.h"

namespace weir::store::conformance {
namespace {

using namespace std::chrono_literals;

constexpr int kNodes = 2;
constexpr int kThreadsPerNode = 4;

/// Runs `work(client, thread)` on all threads of all nodes concurrently. Clients are made first, on
/// thread.
template <typename Work>
void OnAllThreads(Backend& backend, Work work) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kNodes * kThreadsPerNode; ++i) {
    clients.push_back(std::make_unique<Client>(backend, i % kNodes));
  }
  std::vector<std::thread> threads;
  threads.reserve(clients.size());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] { work(*clients[i], static_cast<int>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
}

class StoreConcurrency : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = MakeBackend(nullptr);
};

TEST_F(StoreConcurrency, AHotKeyAdmitsExactlyItsLimit) {
  for (const Quota& quota : {*Quota::TokenBucket(150, 1, 24h), *Quota::FixedWindow(150, kMaxWindow),
                             *Quota::SlidingLog(150, 24h), *Quota::SlidingCounter(150, 240h, 10),
                             *Quota::Concurrency(150, 24h), *Quota::AnchoredWindow(150, 24h)}) {
    SCOPED_TRACE(quota.ToString());
    std::atomic<int> admitted = 0;
    OnAllThreads(*backend_, [&](Client& client, int) {
      for (int i = 0; i < 50; ++i) admitted += client.Charge("hot", quota).allowed() ? 1 : 0;
    });
    EXPECT_EQ(admitted, 150);  // of 8 threads × 50 = 400 checks
  }
}

TEST_F(StoreConcurrency, GroupsInOpposedOrderNeitherDeadlockNorLeak) {
  const Quota quota = *Quota::FixedWindow(100, kMaxWindow);
  std::atomic<int> admitted = 0;
  OnAllThreads(*backend_, [&](Client& client, int thread) {
    for (int i = 0; i < 40; ++i) {
      const bool forward = thread % 2 == 0;
      const char* first = forward ? "{g}a" : "{g}c";
      const char* last = forward ? "{g}c" : "{g}a";
      const auto group =
          client.ChargeAll({{first, 1, &quota}, {"{g}b", 2, &quota}, {last, 1, &quota}});
      admitted += group.applied ? 1 : 0;
    }
  });
  // "b" is charged 2 each time, so 50 groups of the 320 fit.
  EXPECT_EQ(admitted, 50);
  Client client(*backend_);
  EXPECT_EQ(client.Peek("{g}a", quota).remaining, 50);
  EXPECT_EQ(client.Peek("{g}b", quota).remaining, 0);
  EXPECT_EQ(client.Peek("{g}c", quota).remaining, 50);
}

TEST_F(StoreConcurrency, NewKeysFromAllSidesAtOnceAdmitExactlyTheirLimits) {
  const Quota quota = *Quota::FixedWindow(3, kMaxWindow);
  std::atomic<int> admitted = 0;
  OnAllThreads(*backend_, [&](Client& client, int thread) {
    for (int round = 0; round < 5; ++round) {
      std::vector<std::string> keys;
      for (int i = 0; i < 40; ++i) {
        // Each thread in a different order.
        keys.push_back("new" + std::to_string(round) + "-" + std::to_string((i * 7 + thread) % 40));
      }
      std::vector<Charge> charges;
      for (const std::string& key : keys) charges.push_back({key, 1, &quota});
      std::vector<Decision> decisions(keys.size());
      std::vector<Application> batch(keys.size());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        batch[i].charges = std::span(charges).subspan(i, 1);
        batch[i].decisions = std::span(decisions).subspan(i, 1);
      }
      client.Apply(batch);
      for (const Decision& decision : decisions) admitted += decision.allowed() ? 1 : 0;
    }
  });
  EXPECT_EQ(admitted, 5 * 40 * 3);  // 5 rounds × 40 keys × 3, of 8 × 200 checks
}

TEST_F(StoreConcurrency, LeasesAreNeverHeldByTooMany) {
  const Quota quota = *Quota::Concurrency(3, 24h);
  std::atomic<int> holding = 0;
  std::atomic<int> most = 0;
  std::atomic<int> granted = 0;
  OnAllThreads(*backend_, [&](Client& client, int) {
    for (int i = 0; i < 25; ++i) {
      const Decision decision = client.Charge("jobs", quota);
      if (!decision.allowed()) continue;
      ++granted;
      const int now = ++holding;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      --holding;
      EXPECT_TRUE(client.Release("jobs", quota, decision.lease));
    }
  });
  EXPECT_LE(most, 3);
  EXPECT_GT(granted, 0);
  Client client(*backend_);
  EXPECT_EQ(client.Peek("jobs", quota).remaining, 3);
}

}  // namespace
}  // namespace weir::store::conformance
