// The script against the pure steps where numbers are largest: limits to 2^40, windows to 100
// years, rates with any fraction, widths that divide nothing, clocks that jump and go back.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/algorithms.h"
#include "algorithm/state.h"
#include "integration/store/redis/client.h"
#include "support/redis_server.h"

namespace weir::store::redis {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kDay = Nanos{86'400} * 1'000'000'000;

/// Random numbers of every magnitude, often at an edge.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  /// 1 to `most`, each number of digits equally likely.
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
        case Algorithm::kAnchoredWindow:
          return *Quota::AnchoredWindow(limit, window);
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

/// Groups of random steps on one key, on the store and on the model; between groups `move` moves
/// the clock. Two quotas alternate: each takes over the other's state, with a different width, rate
/// or window.
class Trace {
 public:
  Trace(Client& client, const ManualClock& clock, Draw& draw, std::string key,
        std::vector<Quota> quotas)
      : client_(client),
        clock_(clock),
        draw_(draw),
        key_(std::move(key)),
        quotas_(std::move(quotas)) {}

  void Run(int groups, const std::function<void()>& move) {
    for (int group = 0; group < groups; ++group) {
      DrawGroup();
      // All applications in one call, or each in a separate call, which uses other scripts.
      if (group % 3 == 0) {
        for (Application& application : batch_) client_.Apply({&application, 1});
      } else {
        client_.Apply(batch_);
      }
      for (std::size_t i = 0; i < kGroup; ++i) {
        SCOPED_TRACE(key_ + "/" + std::to_string(group) + "/" + std::to_string(i) + " op " +
                     std::to_string(static_cast<int>(batch_[i].op)) + " cost " +
                     std::to_string(charges_[i].cost) + " at " + std::to_string(clock_.Now()) +
                     " " + charges_[i].quota->ToString());
        ASSERT_NO_FATAL_FAILURE(ExpectSame(batch_[i], charges_[i], decisions_[i]));
      }
      move();
    }
  }

 private:
  static constexpr std::size_t kGroup = 50;

  void DrawGroup() {
    charges_.assign(kGroup, {});
    decisions_.assign(kGroup, {});
    batch_.assign(kGroup, {});
    for (std::size_t i = 0; i < kGroup; ++i) {
      const Quota& quota = quotas_[draw_.Below(10) == 0 ? 1 : 0];
      const std::int64_t most =
          draw_.Below(3) == 0 ? quota.limit() : std::max<std::int64_t>(quota.limit() / 20, 1);
      charges_[i] = {key_, draw_.UpTo(most), &quota};
      if (draw_.Below(25) == 0) charges_[i].cost = quota.limit() + 1;
      if (draw_.Below(25) == 0) charges_[i].cost = 0;
      const std::uint64_t kind = draw_.Below(100);
      batch_[i].op = kind < 70   ? Op::kCharge
                     : kind < 80 ? Op::kPeek
                     : kind < 90 ? Op::kRefund
                     : kind < 92 ? Op::kReset
                                 : Op::kRelease;
      batch_[i].lease = leases_[draw_.Below(leases_.size())];
      batch_[i].charges = std::span(charges_).subspan(i, 1);
      batch_[i].decisions = std::span(decisions_).subspan(i, 1);
    }
  }

  void ExpectSame(const Application& application, const Charge& charge, const Decision& got) {
    ASSERT_TRUE(application.status.ok()) << application.status.error().message;
    Decision want;
    bool applied = true;
    if (application.op == Op::kRelease) {
      applied = model_.Release(*charge.quota, clock_.Now(), application.lease);
      want = model_.Step(Op::kPeek, {key_, 0, charge.quota}, clock_.Now());
    } else {
      want = model_.Step(application.op, charge, clock_.Now());
      if (application.op == Op::kCharge) applied = want.allowed();
    }
    ASSERT_EQ(application.applied, applied);
    ASSERT_EQ(got.verdict, want.verdict);
    ASSERT_EQ(got.limit, want.limit);
    ASSERT_EQ(got.remaining, want.remaining);
    ASSERT_EQ(got.retry_after, want.retry_after);
    ASSERT_EQ(got.reset_after, want.reset_after);
    ASSERT_EQ(got.lease, want.lease);
    if (got.lease != 0) leases_.push_back(got.lease);
  }

  Client& client_;
  const ManualClock& clock_;
  Draw& draw_;
  const std::string key_;
  const std::vector<Quota> quotas_;
  Model model_;
  std::vector<std::int64_t> leases_ = {1};
  std::vector<Charge> charges_;
  std::vector<Decision> decisions_;
  std::vector<Application> batch_;
};

TEST_P(RedisExactness, TheScriptDecidesAsThePureStepDoes) {
  constexpr int kRounds = 40;
  constexpr int kGroups = 10;  // of 50: 20,000 steps in all
  const Algorithm algorithm = GetParam();
  Draw draw(7 + static_cast<std::uint64_t>(algorithm));
  ManualClock clock;
  Client client({.url = server_->url(), .clock = &clock});

  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Quota> quotas = {draw.AnyQuota(algorithm), draw.AnyQuota(algorithm)};
    const std::string key =
        "exact" + std::to_string(static_cast<int>(algorithm)) + "-" + std::to_string(round);
    clock.Set(round % 4 == 3 ? -static_cast<Nanos>(draw.UpTo(40'000 * kDay))
                             : static_cast<Nanos>(draw.UpTo(60'000 * kDay)));
    const auto move = [&] {
      // Forward by a part of the window, by several, or back.
      const Nanos window = quotas[0].window().count();
      const auto step = static_cast<Nanos>(draw.UpTo(std::max<Nanos>(window / 3, 1)));
      const std::uint64_t kind = draw.Below(10);
      if (kind < 6) clock.Set(clock.Now() + step);
      if (kind == 6) clock.Set(clock.Now() - step);
      if (kind == 7 && window < 1000 * kDay) clock.Set(clock.Now() + 3 * window);
    };
    ASSERT_NO_FATAL_FAILURE(Trace(client, clock, draw, key, quotas).Run(kGroups, move));
  }
}

TEST_P(RedisExactness, NumbersAtTheEdgeOfADoubleAreAsExact) {
  // The script counts with plain numbers up to 2^51 and with two words beyond; sums reach 2^53.
  constexpr int kRounds = 60;
  constexpr int kGroups = 5;
  const Algorithm algorithm = GetParam();
  Draw draw(70 + static_cast<std::uint64_t>(algorithm));
  ManualClock clock;
  Client client({.url = server_->url(), .clock = &clock});
  const auto edge = [&draw] {
    constexpr int kBits[] = {31, 32, 50, 51, 51, 51, 52, 53, 54};
    return (Nanos{1} << kBits[draw.Below(std::size(kBits))]) + static_cast<Nanos>(draw.Below(7)) -
           3;
  };
  const auto quota = [&] {
    const std::chrono::nanoseconds window(edge());
    std::int64_t limit = draw.Below(2) == 0 ? draw.UpTo(4) : draw.UpTo(kMaxLimit);
    if (algorithm == Algorithm::kTokenBucket) {
      limit = std::min(limit, std::int64_t{1} << 31);  // a rate's numerator has 32 bits
      // Fills in exactly the window, or in a little more or less with a fraction of a nanosecond.
      const auto odd = Quota::TokenBucket(limit, std::max<std::int64_t>(limit - 1, 1), window);
      return odd.ok() && draw.Below(2) == 0 ? *odd : *Quota::TokenBucket(limit, limit, window);
    }
    if (algorithm == Algorithm::kFixedWindow) return *Quota::FixedWindow(limit, window);
    if (algorithm == Algorithm::kSlidingLog) return *Quota::SlidingLog(limit, window);
    if (algorithm == Algorithm::kSlidingCounter) return *Quota::SlidingCounter(limit, window, 4);
    if (algorithm == Algorithm::kAnchoredWindow) return *Quota::AnchoredWindow(limit, window);
    return *Quota::Concurrency(limit, window);
  };

  for (int round = 0; round < kRounds; ++round) {
    const std::string key =
        "edge" + std::to_string(static_cast<int>(algorithm)) + "-" + std::to_string(round);
    clock.Set(20'000 * kDay + edge());
    const auto move = [&] {
      const std::uint64_t kind = draw.Below(6);
      if (kind < 2) clock.Set(clock.Now() + edge());
      if (kind == 2) clock.Set(clock.Now() - edge());
      if (kind == 3) clock.Set(clock.Now() + static_cast<Nanos>(draw.Below(5)));
    };
    ASSERT_NO_FATAL_FAILURE(Trace(client, clock, draw, key, {quota(), quota()}).Run(kGroups, move));
  }
}

TEST_P(RedisExactness, AChargeByItselfTakesTheScriptForOne) {
  const auto quota = [](Algorithm algorithm) {
    Draw draw(1);
    for (;;) {
      const Quota drawn = draw.AnyQuota(algorithm);
      if (drawn.window() > 1s && drawn.window() < 24h && drawn.limit() > 9) return drawn;
    }
  }(GetParam());
  Client client({.url = server_->url()});
  client.One(Op::kReset, {"single", 0, &quota});
  client.One(Op::kCharge, {"single", 1, &quota});
  server_->Command({"CONFIG", "RESETSTAT"});
  for (int i = 0; i < 4; ++i) client.One(Op::kCharge, {"single", 1, &quota});
  const std::string stats = server_->Command({"INFO", "commandstats"});
  const bool logged = algorithm::Of(quota).logged;
  EXPECT_EQ(stats.find("cmdstat_mget:") == std::string::npos, !logged) << stats;
  EXPECT_EQ(stats.find("cmdstat_get:calls=4,") != std::string::npos, !logged) << stats;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RedisExactness,
                         testing::Values(Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                                         Algorithm::kSlidingLog, Algorithm::kSlidingCounter,
                                         Algorithm::kConcurrency, Algorithm::kAnchoredWindow));

}  // namespace
}  // namespace weir::store::redis
