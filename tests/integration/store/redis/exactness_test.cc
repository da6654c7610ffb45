// The script against the pure steps where numbers are largest: limits to 2^40, windows to 100
// years, rates of any fraction, widths that divide nothing, clocks that jump and go back.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "algorithm/state.h"
#include "integration/store/redis/client.h"
#include "support/redis_server.h"

namespace weir::store::redis {
namespace {

constexpr Nanos kDay = Nanos{86'400} * 1'000'000'000;

/// Random numbers of every magnitude, often at an edge.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  /// 1 to `most`, each number of digits as likely as any other.
  std::int64_t UpTo(std::int64_t most) {
    if (Below(16) == 0) return most;
    const int bits = 64 - __builtin_clzll(static_cast<std::uint64_t>(most));
    const std::uint64_t drawn = random_() >> (64 - 1 - Below(static_cast<std::uint64_t>(bits)));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(drawn), 1, most);
  }

  Quota AnyQuota(Algorithm algorithm) {
    for (;;) {
      const std::int64_t limit = UpTo(kMaxLimit);
      const std::chrono::nanoseconds window(UpTo(kMaxWindow.count()));
      switch (algorithm) {
        case Algorithm::kTokenBucket:
          if (auto quota = Quota::TokenBucket(limit, UpTo(kMaxLimit), window); quota.ok()) {
            return *quota;
          }
          continue;
        case Algorithm::kFixedWindow:
          return *Quota::FixedWindow(limit, window);
        case Algorithm::kSlidingLog:
          return *Quota::SlidingLog(limit, window);
        case Algorithm::kSlidingCounter:
          if (auto quota =
                  Quota::SlidingCounter(limit, window, UpTo(Below(8) == 0 ? kMaxBuckets : 12));
              quota.ok()) {
            return *quota;
          }
          continue;
        case Algorithm::kConcurrency:
          return *Quota::Concurrency(limit, window);
      }
    }
  }

 private:
  std::mt19937_64 random_;
};

/// One key under one algorithm, as the pure steps keep it.
class Model {
 public:
  Decision Step(Op op, const Charge& charge, Nanos now) {
    const Quota& quota = *charge.quota;
    if (op == Op::kReset) bytes_.clear();
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    algorithm::State state{bytes_.data(), size, size};
    if (op == Op::kPeek) return algorithm::Peek(quota, state, now, charge.cost);
    if (op == Op::kReset) return algorithm::Peek(quota, state, now, 0);
    if (op == Op::kCharge) {
      bytes_.resize(std::max(size, algorithm::CapacityForAcquire(quota, state)));
    }
    state.data = bytes_.data();
    state.capacity = static_cast<std::uint32_t>(bytes_.size());
    const Decision decision = op == Op::kCharge ? algorithm::Acquire(quota, state, now, charge.cost)
                                                : algorithm::Refund(quota, state, now, charge.cost);
    bytes_.resize(state.size);
    return decision;
  }
  bool Release(const Quota& quota, Nanos now, std::int64_t lease) {
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    algorithm::State state{bytes_.data(), size, size};
    const bool released = algorithm::Release(quota, state, now, lease);
    bytes_.resize(state.size);
    return released;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

class RedisExactness : public testing::TestWithParam<Algorithm> {
 protected:
  static void SetUpTestSuite() { server_ = new test::RedisServer; }
  static void TearDownTestSuite() { delete server_; }
  static test::RedisServer* server_;
};

test::RedisServer* RedisExactness::server_ = nullptr;

TEST_P(RedisExactness, TheScriptDecidesAsThePureStepDoes) {
  constexpr int kRounds = 40;
  constexpr int kGroups = 10;
  constexpr std::size_t kGroup = 50;  // 20,000 steps in all
  const Algorithm algorithm = GetParam();
  Draw draw(7 + static_cast<std::uint64_t>(algorithm));
  ManualClock clock;
  Client client({.url = server_->url(), .clock = &clock});

  for (int round = 0; round < kRounds; ++round) {
    // Two quotas on one key: one takes over the other's state, in another width, rate or window.
    const std::vector<Quota> quotas = {draw.AnyQuota(algorithm), draw.AnyQuota(algorithm)};
    const std::string key =
        "exact" + std::to_string(static_cast<int>(algorithm)) + "-" + std::to_string(round);
    Model model;
    std::vector<std::int64_t> leases = {1};
    clock.Set(round % 4 == 3 ? -static_cast<Nanos>(draw.UpTo(40'000 * kDay))
                             : static_cast<Nanos>(draw.UpTo(60'000 * kDay)));
    for (int group = 0; group < kGroups; ++group) {
      std::vector<Charge> charges(kGroup);
      std::vector<Decision> decisions(kGroup);
      std::vector<Application> batch(kGroup);
      for (std::size_t i = 0; i < kGroup; ++i) {
        const Quota& quota = quotas[draw.Below(10) == 0 ? 1 : 0];
        const std::int64_t most =
            draw.Below(3) == 0 ? quota.limit() : std::max<std::int64_t>(quota.limit() / 20, 1);
        charges[i] = {key, draw.UpTo(most), &quota};
        if (draw.Below(25) == 0) charges[i].cost = quota.limit() + 1;
        if (draw.Below(25) == 0) charges[i].cost = 0;
        const std::uint64_t kind = draw.Below(100);
        batch[i].op = kind < 70   ? Op::kCharge
                      : kind < 80 ? Op::kPeek
                      : kind < 90 ? Op::kRefund
                      : kind < 92 ? Op::kReset
                                  : Op::kRelease;
        batch[i].lease = leases[draw.Below(leases.size())];
        batch[i].charges = std::span(charges).subspan(i, 1);
        batch[i].decisions = std::span(decisions).subspan(i, 1);
      }
      client.Apply(batch);
      for (std::size_t i = 0; i < kGroup; ++i) {
        SCOPED_TRACE(std::to_string(round) + "/" + std::to_string(group) + "/" + std::to_string(i) +
                     " op " + std::to_string(static_cast<int>(batch[i].op)) + " cost " +
                     std::to_string(charges[i].cost) + " at " + std::to_string(clock.Now()) + " " +
                     charges[i].quota->ToString());
        ASSERT_TRUE(batch[i].status.ok()) << batch[i].status.error().message;
        Decision want;
        bool applied = true;
        if (batch[i].op == Op::kRelease) {
          applied = model.Release(*charges[i].quota, clock.Now(), batch[i].lease);
          want = model.Step(Op::kPeek, {key, 0, charges[i].quota}, clock.Now());
        } else {
          want = model.Step(batch[i].op, charges[i], clock.Now());
          if (batch[i].op == Op::kCharge) applied = want.allowed();
        }
        ASSERT_EQ(batch[i].applied, applied);
        const Decision& got = decisions[i];
        ASSERT_EQ(got.verdict, want.verdict);
        ASSERT_EQ(got.limit, want.limit);
        ASSERT_EQ(got.remaining, want.remaining);
        ASSERT_EQ(got.retry_after, want.retry_after);
        ASSERT_EQ(got.reset_after, want.reset_after);
        ASSERT_EQ(got.lease, want.lease);
        if (got.lease != 0) leases.push_back(got.lease);
      }
      // On by a part of the window, by several, or back.
      const Nanos window = quotas[0].window().count();
      const auto step = static_cast<Nanos>(draw.UpTo(std::max<Nanos>(window / 3, 1)));
      const std::uint64_t move = draw.Below(10);
      if (move < 6) clock.Set(clock.Now() + step);
      if (move == 6) clock.Set(clock.Now() - step);
      if (move == 7 && window < 1000 * kDay) clock.Set(clock.Now() + 3 * window);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RedisExactness,
                         testing::Values(Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                                         Algorithm::kSlidingLog, Algorithm::kSlidingCounter,
                                         Algorithm::kConcurrency));

}  // namespace
}  // namespace weir::store::redis
