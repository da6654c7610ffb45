// Settling against what would have been: of two keys one is charged an estimate and settled later,
// the other is charged the real cost immediately, and both get the same other charges and refunds.
// The settled key never has more left than the other, and exactly as much except for a fraction of
// a nanosecond. Wrong ways to return permits are tried on the same traces, which must detect them.
// Many open reservations: low_marks_test.cc.

#include "algorithm/settle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "algorithm/lease.h"

namespace weir::algorithm {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000 + 123'456'789;

/// How permits are returned.
enum class Way : std::uint8_t {
  kSettle,
  kRefund,  ///< the latest charges first, regardless of refills
  kReturn,  ///< as for a lease: less by the time that has passed
};

/// A key's state in a separate buffer.
class Key {
 public:
  explicit Key(const Quota& quota) : quota_(quota) {}

  State& Ready() {
    bytes_.resize(std::max<std::size_t>(bytes_.size(), CapacityForReserve(quota_, View())));
    state_ = View();
    return state_;
  }
  Decision Charge(Nanos now, std::int64_t cost) { return Acquire(quota_, Ready(), now, cost); }
  Decision Estimate(Nanos now, std::int64_t cost) {
    return Reserve(quota_, Ready(), now, cost, std::chrono::nanoseconds(24h).count());
  }
  Decision Owe(Nanos now, std::int64_t cost) { return Overdraw(quota_, Ready(), now, cost); }
  /// Uses another quota from now on, as after a change of the policy.
  void Use(const Quota& quota) { quota_ = quota; }
  bool valid() const { return Valid(quota_.algorithm(), std::span(bytes_.data(), state_.size)); }

 private:
  State View() { return {bytes_.data(), state_.size, static_cast<std::uint32_t>(bytes_.size())}; }

  Quota quota_;
  std::vector<std::uint8_t> bytes_;
  State state_;
};

struct Outcome {
  int settled = 0;
  int exact = 0;       ///< the same amount left, to the last field
  int too_much = 0;    ///< more left than if the real cost had been charged immediately
  int too_little = 0;  ///< less left, by more than rounding
};

/// Random traces of one reservation among other charges.
class Twins {
 public:
  Twins(const Quota& quota, Way way, std::uint64_t seed)
      : quota_(quota), way_(way), random_(seed) {}

  Outcome Run(int rounds) {
    for (int i = 0; i < rounds; ++i) Round();
    return outcome_;
  }

 private:
  std::int64_t Below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }

  Nanos Pause() {
    const Nanos window = quota_.window().count();
    switch (Below(4)) {
      case 0:
        return 0;
      case 1:
        return Below(1000);
      case 2:
        return Below(window / 50 + 1);
      default:
        return Below(window / 3 + 1);
    }
  }

  /// Charges that apply whether they fit or not, so that both keys are charged alike. A bucket's
  /// refunds are the same for both; those of the others return the reserved permits as well.
  void Others(int steps) {
    const bool refunds = quota_.algorithm() == Algorithm::kTokenBucket;
    for (int i = 0; i < steps; ++i) {
      now_ += Pause();
      const std::int64_t kind = Below(6);
      if (kind < 2) continue;
      const std::int64_t cost = 1 + Below(std::max<std::int64_t>(quota_.limit() / 6, 1));
      for (Key* key : {estimated_, real_}) {
        if (kind == 2 && refunds) {
          Refund(quota_, key->Ready(), now_, cost);
        } else {
          key->Owe(now_, cost);
        }
      }
    }
  }

  void Round() {
    Key estimated(quota_);
    Key real(quota_);
    estimated_ = &estimated;
    real_ = &real;
    now_ = kStart + Below(1'000'000'000'000);
    Others(static_cast<int>(Below(4)));
    const std::int64_t estimate = 2 + Below(std::max<std::int64_t>(quota_.limit() / 2, 1));
    const std::int64_t cost = 1 + Below(estimate);
    const Decision reserved = estimated.Estimate(now_, estimate);
    if (!reserved.allowed()) return;
    real.Charge(now_, cost);
    const Nanos stamp = StampOf(quota_, now_, reserved);
    const Nanos at = ChargedAt(quota_, now_, reserved);
    Others(static_cast<int>(Below(6)));
    now_ += Pause();
    GiveBack(estimated, stamp, at, estimate - cost);
    ASSERT_TRUE(estimated.valid());
    Compare();
  }

  void GiveBack(Key& key, Nanos stamp, Nanos at, std::int64_t count) {
    if (way_ == Way::kSettle) Settle(quota_, key.Ready(), now_, stamp, -count);
    if (way_ == Way::kRefund) Refund(quota_, key.Ready(), now_, count);
    if (way_ == Way::kReturn) Return(quota_, key.Ready(), now_, at, count);
  }

  void Compare() {
    ++outcome_.settled;
    const Decision got = estimated_->Owe(now_, 0);
    const Decision want = real_->Owe(now_, 0);
    if (got == want) ++outcome_.exact;
    const bool more =
        got.remaining > want.remaining || got.retry_after < want.retry_after ||
        (quota_.algorithm() == Algorithm::kTokenBucket && got.reset_after < want.reset_after);
    if (more) ++outcome_.too_much;
    const bool rounded = want.remaining - got.remaining <= 1 &&
                         got.reset_after - want.reset_after <= 1ns &&
                         quota_.algorithm() == Algorithm::kTokenBucket && quota_.refill() != 1;
    if (got != want && !rounded) ++outcome_.too_little;
    // It must not be better off later either: charges of a window or a log expire in time.
    for (int i = 0; i < 3; ++i) {
      now_ += Pause();
      if (estimated_->Owe(now_, 0).remaining > real_->Owe(now_, 0).remaining) ++outcome_.too_much;
    }
  }

  const Quota quota_;
  const Way way_;
  std::mt19937_64 random_;
  Key* estimated_ = nullptr;
  Key* real_ = nullptr;
  Nanos now_ = 0;
  Outcome outcome_;
};

const std::vector<Quota>& Quotas() {
  static const std::vector<Quota> quotas = {
      *Quota::TokenBucket(100, 1, 1s),
      *Quota::TokenBucket(50, 7, 3s),
      *Quota::TokenBucket(1'000'000, 999'937, 60s),
      *Quota::TokenBucket(100'000, 100'000, 24h),
      *Quota::FixedWindow(40, 10s),
      *Quota::SlidingLog(30, 7s),
      *Quota::SlidingCounter(50, 10s, 10),
      *Quota::SlidingCounter(90, 7s, 3),
      *Quota::AnchoredWindow(40, 6s),
  };
  return quotas;
}

TEST(Settle, LeavesWhatChargingTheRealCostAtOnceWouldHaveLeft) {
  for (const Quota& quota : Quotas()) {
    const Outcome outcome = Twins(quota, Way::kSettle, 20'261'116).Run(20'000);
    EXPECT_GT(outcome.settled, 5'000) << quota.ToString();
    EXPECT_EQ(outcome.too_much, 0) << quota.ToString();
    EXPECT_EQ(outcome.too_little, 0) << quota.ToString();
    EXPECT_GT(outcome.exact, outcome.settled / 2) << quota.ToString();
  }
}

/// Two keys as above under a sliding counter whose width changes and changes back while the
/// reservation is open. Charges may have moved to later buckets by then, and others' charges to the
/// reservation's bucket. Too little may be returned, too much never.
int TooMuchWithChanges(const std::vector<Quota>& quotas, std::uint64_t seed, int& gave_back) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  const auto most =
      std::ranges::max(quotas, {}, [](const Quota& q) { return q.window(); }).window();
  int too_much = 0;
  for (int round = 0; round < 20'000; ++round) {
    Nanos now = kStart + below(most.count());
    Key estimated(quotas[0]);
    Key real(quotas[0]);
    const Quota* quota = &quotas[0];
    const auto others = [&](std::int64_t steps, bool changes) {
      for (; steps > 0; --steps) {
        now += below(most.count() / (below(2) == 0 ? 4 : 40));
        if (changes) quota = &quotas[static_cast<std::size_t>(below(std::ssize(quotas)))];
        const std::int64_t cost = 1 + below(20);
        for (Key* key : {&estimated, &real}) {
          key->Use(*quota);
          key->Owe(now, cost);
        }
      }
    };
    others(below(4), below(2) == 0);
    quota = &quotas[0];
    estimated.Use(*quota);
    real.Use(*quota);
    const std::int64_t estimate = 2 + below(50);
    const std::int64_t cost = 1 + below(estimate);
    const Decision reserved = estimated.Estimate(now, estimate);
    if (!reserved.allowed()) continue;
    real.Charge(now, cost);
    const Nanos stamp = StampOf(*quota, now, reserved);
    others(below(6), true);
    estimated.Use(quotas[0]);
    real.Use(quotas[0]);
    if (below(2) == 0) now += below(most.count() / 4);
    const std::int64_t before = estimated.Owe(now, 0).remaining;
    Settle(quotas[0], estimated.Ready(), now, stamp, cost - estimate);
    gave_back += estimated.Owe(now, 0).remaining > before ? 1 : 0;
    for (int i = 0; i < 8; ++i) {
      const Quota& under = quotas[static_cast<std::size_t>(below(std::ssize(quotas)))];
      estimated.Use(under);
      real.Use(under);
      if (estimated.Owe(now, 0).remaining > real.Owe(now, 0).remaining) ++too_much;
      now += below(most.count() / 4);
    }
  }
  return too_much;
}

TEST(Settle, ACounterWhoseWidthChangesAndChangesBackGivesNothingBackThatIsNotItsOwn) {
  const std::vector<std::vector<Quota>> all = {
      {*Quota::SlidingCounter(500, 10s, 10), *Quota::SlidingCounter(500, 15s, 10)},
      {*Quota::SlidingCounter(500, 10s, 10), *Quota::SlidingCounter(500, 5s, 100)},
      {*Quota::SlidingCounter(500, 10s, 10), *Quota::SlidingCounter(500, 5s, 5)},
      {*Quota::SlidingCounter(500, 10s, 3), *Quota::SlidingCounter(500, 7s, 5),
       *Quota::SlidingCounter(500, 60s, 4)},
      {*Quota::SlidingCounter(500, 10s, 1), *Quota::SlidingCounter(500, 1s, 1)}};
  int gave_back = 0;
  for (const std::vector<Quota>& quotas : all) {
    EXPECT_EQ(TooMuchWithChanges(quotas, 18, gave_back), 0) << quotas.back().ToString();
  }
  EXPECT_GT(gave_back, 1'000);
}

TEST(Settle, OtherWaysOfGivingBackAreFound) {
  int refunds_too_much = 0;
  int returns_too_little = 0;
  for (const Quota& quota : Quotas()) {
    refunds_too_much += Twins(quota, Way::kRefund, 1).Run(5'000).too_much;
    if (quota.algorithm() == Algorithm::kTokenBucket) {
      returns_too_little += Twins(quota, Way::kReturn, 1).Run(5'000).too_little;
    }
  }
  EXPECT_GT(refunds_too_much, 100);
  EXPECT_GT(returns_too_little, 100);
}

// 100 tokens a day; 60 are reserved and 20 used. An hour later 40 are returned, all of them: the
// bucket would not have been full by then.
TEST(Settle, GivesBackToABucketAllThatTimeHasNot) {
  const Quota quota = *Quota::TokenBucket(100, 100, 24h);
  Key key(quota);
  const Nanos stamp = StampOf(quota, kStart, key.Estimate(kStart, 60));
  const Nanos later = kStart + Nanos{3'600} * 1'000'000'000;
  EXPECT_EQ(Settle(quota, key.Ready(), later, stamp, -40).remaining, 84);  // 80 and 4 refilled
}

// The same a day later: the bucket has been full for hours, and nothing is to be returned.
TEST(Settle, GivesBackNothingThatTimeHasGivenBack) {
  const Quota quota = *Quota::TokenBucket(100, 100, 24h);
  Key key(quota);
  const Nanos stamp = StampOf(quota, kStart, key.Estimate(kStart, 60));
  const Nanos later = kStart + Nanos{86'400} * 1'000'000'000;
  key.Charge(later, 50);
  EXPECT_EQ(Settle(quota, key.Ready(), later, stamp, -40).remaining, 50);
}

// The example of docs/design/reservations.md: 100 permits, one a second. 50 and 10 are reserved,
// and the 50 are returned immediately, so the bucket is full after 10 s. After 20 s it owes nothing
// for the 10 any more, and the 30 that another client is charged then stay charged.
TEST(Settle, WhatOthersGaveBackDoesNotMakeItTooMuch) {
  const Quota quota = *Quota::TokenBucket(100, 1, 1s);
  Key key(quota);
  const Nanos first = StampOf(quota, kStart, key.Estimate(kStart, 50));
  const Nanos second = StampOf(quota, kStart, key.Estimate(kStart, 10));
  EXPECT_EQ(Settle(quota, key.Ready(), kStart, first, -50).remaining, 90);
  const Nanos later = kStart + Nanos{20} * 1'000'000'000;
  EXPECT_EQ(key.Charge(later, 30).remaining, 70);
  EXPECT_EQ(Settle(quota, key.Ready(), later, second, -10).remaining, 70);
}

// The same, but the bucket was never full: after 5 s it owes 5, and the settlement returns all 5.
// Had nothing been reserved, it would have been full then and owe only the 30.
TEST(Settle, GivesBackWhatWasOwedAtTheLowest) {
  const Quota quota = *Quota::TokenBucket(100, 1, 1s);
  Key key(quota);
  const Nanos stamp = StampOf(quota, kStart, key.Estimate(kStart, 10));
  const Nanos later = kStart + Nanos{5} * 1'000'000'000;
  EXPECT_EQ(key.Charge(later, 30).remaining, 65);
  EXPECT_EQ(Settle(quota, key.Ready(), later, stamp, -10).remaining, 70);
}

// A key that was reset has no record of the reservation, and later charges of others stay.
TEST(Settle, GivesNothingBackToABucketThatWasForgotten) {
  const Quota quota = *Quota::TokenBucket(100, 1, 1s);
  Key key(quota);
  const Nanos stamp = StampOf(quota, kStart, key.Estimate(kStart, 10));
  Key fresh(quota);
  EXPECT_EQ(fresh.Charge(kStart + 1, 30).remaining, 70);
  EXPECT_EQ(Settle(quota, fresh.Ready(), kStart + 2, stamp, -10).remaining, 70);
  const Nanos again = StampOf(quota, kStart + 3, fresh.Estimate(kStart + 3, 20));
  EXPECT_EQ(Settle(quota, fresh.Ready(), kStart + 4, stamp, -10).remaining, 50);
  EXPECT_EQ(Settle(quota, fresh.Ready(), kStart + 5, again, -20).remaining, 70);
}

TEST(Settle, ChargesMoreWhetherItFitsOrNot) {
  const Quota quota = *Quota::FixedWindow(100, 24h);
  Key key(quota);
  const Nanos stamp = StampOf(quota, kStart, key.Charge(kStart, 60));
  const Decision standing = Settle(quota, key.Ready(), kStart, stamp, 70);
  EXPECT_EQ(standing.verdict, Verdict::kLimited);
  EXPECT_EQ(standing.remaining, 0);
}

TEST(Settle, ReleasesTheLeaseOfAConcurrencyQuota) {
  const Quota quota = *Quota::Concurrency(5, 60s);
  Key key(quota);
  key.Charge(kStart, 2);
  const Nanos stamp = StampOf(quota, kStart, key.Charge(kStart, 3));
  EXPECT_EQ(Settle(quota, key.Ready(), kStart, stamp, -1).remaining, 3);
  EXPECT_EQ(Settle(quota, key.Ready(), kStart, stamp, 1).remaining, 3);
}

}  // namespace
}  // namespace weir::algorithm
