// Leases against the quota they stand for: random traces of nodes that take, spend and return
// permits, all admissions replayed through the step with the original quota. Each rule of the
// theorem is also broken deliberately, and the same traces must detect it.

#include "algorithm/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace weir::algorithm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// The rule of the protocol that is broken.
enum class Mutant : std::uint8_t {
  kNone,
  kNoHeadroom,        ///< charged under the original quota
  kRefund,            ///< Refund instead of Return
  kOutlivesWindow,    ///< spent for the whole term, ignoring the window it was charged in
  kReturnsElsewhere,  ///< returned as of now, not as of the charge
};

/// A key's state in a separate buffer.
class Key {
 public:
  State& Ready(const Quota& quota) {
    State view{bytes_.data(), size(), static_cast<std::uint32_t>(bytes_.size())};
    bytes_.resize(std::max<std::size_t>(bytes_.size(), CapacityForAcquire(quota, view)));
    state_ = {bytes_.data(), state_.size, static_cast<std::uint32_t>(bytes_.size())};
    return state_;
  }
  bool valid(Algorithm algorithm) const {
    return Valid(algorithm, std::span(bytes_.data(), state_.size));
  }

 private:
  std::uint32_t size() const { return state_.size; }
  std::vector<std::uint8_t> bytes_;
  State state_;
};

struct Lot {
  std::int64_t left;
  Nanos at;
  Nanos until;
};

struct Admission {
  Nanos time;
  std::int64_t cost;
};

class World {
 public:
  World(const Quota& quota, Mutant mutant, std::uint32_t seed)
      : original_(quota), terms_(*TermsFor(quota)), mutant_(mutant), random_(seed) {
    if (mutant == Mutant::kNoHeadroom) terms_.quota = quota;
    now_ = Nanos{1'700'000'000'000'000'000} + Draw(0, 1'000'000'000);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      Move();
      switch (Draw(0, 9)) {
        case 0:
        case 1:
        case 2:
          Take();
          break;
        case 3:
          GiveBack();
          break;
        case 4:
          ChargeExactly();
          break;
        default:
          Spend();
      }
      ASSERT_TRUE(key_.valid(original_.algorithm()));
    }
  }

  /// The first admission that the original quota would have denied.
  std::optional<Admission> Violation() const {
    Key replay;
    for (const Admission& admission : admissions_) {
      if (!Acquire(original_, replay.Ready(original_), admission.time, admission.cost).allowed()) {
        return admission;
      }
    }
    return std::nullopt;
  }

 private:
  Nanos Draw(Nanos low, Nanos high) {
    return std::uniform_int_distribution<Nanos>(low, high)(random_);
  }

  void Move() {
    switch (Draw(0, 7)) {
      case 0:
        now_ += 1;
        break;
      case 1:
        now_ += Draw(0, original_.window().count());
        break;
      case 2:  // to the last moment of a lease
        if (!lots_.empty()) now_ = std::max(now_, lots_.front().until);
        break;
      case 3:
        break;
      default:
        now_ += Draw(0, terms_.term / 2);
    }
  }

  void Take() {
    const std::int64_t want = Draw(0, 1) == 0 ? original_.limit() : Draw(1, original_.limit());
    const LeaseGrant grant = Lease(terms_.quota, key_.Ready(terms_.quota), now_, want);
    if (grant.granted == 0) return;
    const Nanos lasts =
        mutant_ == Mutant::kOutlivesWindow ? terms_.term : SpendFor(terms_, grant.decision);
    lots_.push_back({grant.granted, grant.at, now_ + lasts});
  }

  void Spend() {
    std::erase_if(lots_, [this](const Lot& lot) { return lot.until < now_ || lot.left == 0; });
    if (lots_.empty()) return;
    Lot& lot = lots_[static_cast<std::size_t>(Draw(0, static_cast<Nanos>(lots_.size()) - 1))];
    const std::int64_t cost = Draw(0, 2) == 0 ? Draw(1, lot.left) : lot.left;
    lot.left -= cost;
    admissions_.push_back({now_, cost});
  }

  void GiveBack() {
    if (lots_.empty()) return;
    Lot& lot = lots_[static_cast<std::size_t>(Draw(0, static_cast<Nanos>(lots_.size()) - 1))];
    if (lot.left == 0) return;
    const std::int64_t count = Draw(1, lot.left);
    lot.left -= count;
    State& state = key_.Ready(terms_.quota);
    if (mutant_ == Mutant::kRefund) {
      Refund(terms_.quota, state, now_, count);
    } else {
      Return(terms_.quota, state, now_, mutant_ == Mutant::kReturnsElsewhere ? now_ : lot.at,
             count);
    }
  }

  void ChargeExactly() {
    const std::int64_t cost = Draw(1, original_.limit());
    if (Acquire(terms_.quota, key_.Ready(terms_.quota), now_, cost).allowed()) {
      admissions_.push_back({now_, cost});
    }
  }

  const Quota original_;
  LeaseTerms terms_;
  const Mutant mutant_;
  std::mt19937_64 random_;
  Nanos now_;
  Key key_;
  std::vector<Lot> lots_;
  std::vector<Admission> admissions_;
};

int FirstSeedThatFails(const Quota& quota, Mutant mutant, int seeds) {
  for (int seed = 0; seed < seeds; ++seed) {
    World world(quota, mutant, static_cast<std::uint32_t>(seed));
    world.Run(60);
    if (world.Violation()) return seed;
  }
  return -1;
}

std::vector<Quota> Quotas() {
  return {*Quota::TokenBucket(20, 7, 3s),    *Quota::TokenBucket(100, 100),
          *Quota::TokenBucket(1000, 3, 1ms), *Quota::FixedWindow(10, 1s),
          *Quota::FixedWindow(100, 60s),     *Quota::SlidingLog(10, 1s),
          *Quota::SlidingLog(50, 300ms),     *Quota::SlidingCounter(10, 1s, 10),
          *Quota::SlidingCounter(50, 3s, 7), *Quota::SlidingCounter(20, 2s, 60)};
}

TEST(Lease, NothingIsAdmittedThatTheOriginalQuotaWouldRefuse) {
  for (const Quota& quota : Quotas()) {
    EXPECT_EQ(FirstSeedThatFails(quota, Mutant::kNone, 3000), -1) << quota.ToString();
  }
}

// A model that cannot fail proves nothing.
TEST(Lease, EveryRuleThatIsBrokenIsFound) {
  const auto found = [](const Quota& quota, Mutant mutant) {
    return FirstSeedThatFails(quota, mutant, 20'000) >= 0;
  };
  EXPECT_TRUE(found(*Quota::TokenBucket(20, 7, 3s), Mutant::kNoHeadroom));
  EXPECT_TRUE(found(*Quota::SlidingLog(10, 1s), Mutant::kNoHeadroom));
  EXPECT_TRUE(found(*Quota::TokenBucket(20, 20), Mutant::kRefund));
  EXPECT_TRUE(found(*Quota::SlidingLog(10, 1s), Mutant::kRefund));
  EXPECT_TRUE(found(*Quota::FixedWindow(10, 1s), Mutant::kRefund));
  EXPECT_TRUE(found(*Quota::SlidingCounter(10, 1s, 10), Mutant::kRefund));
  EXPECT_TRUE(found(*Quota::FixedWindow(10, 1s), Mutant::kOutlivesWindow));
  EXPECT_TRUE(found(*Quota::SlidingCounter(10, 1s, 10), Mutant::kOutlivesWindow));
  EXPECT_TRUE(found(*Quota::TokenBucket(20, 20), Mutant::kReturnsElsewhere));
}

TEST(Lease, GrantsTheFirstHalfThatFits) {
  const Quota quota = *Quota::FixedWindow(10, 1s);
  Key key;
  EXPECT_EQ(Lease(quota, key.Ready(quota), 5, 4).granted, 4);
  EXPECT_EQ(Lease(quota, key.Ready(quota), 5, 100).granted, 5);  // 10 does not fit
  EXPECT_EQ(Lease(quota, key.Ready(quota), 5, 2).granted, 1);
  const LeaseGrant none = Lease(quota, key.Ready(quota), 5, 2);
  EXPECT_EQ(none.granted, 0);
  EXPECT_EQ(none.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(none.decision.retry_after, 1s - 5ns);
}

TEST(Lease, ReturnsToABucketWhatTheChargeStillWeighs) {
  const Quota quota = *Quota::TokenBucket(100, 10);
  Key key;
  const LeaseGrant grant = Lease(quota, key.Ready(quota), 1'000'000'000, 50);
  EXPECT_EQ(Return(quota, key.Ready(quota), 1'000'000'000, grant.at, 10).remaining, 60);
  // A second later ten permits have been refilled anyway.
  EXPECT_EQ(Return(quota, key.Ready(quota), 2'000'000'000, grant.at, 10).remaining, 70);
  EXPECT_EQ(Return(quota, key.Ready(quota), 2'000'000'000, grant.at, 20).remaining, 80);
}

TEST(Lease, ReturnsToALogOnlyWhatWasChargedThen) {
  const Quota quota = *Quota::SlidingLog(100, 10s);
  Key key;
  const LeaseGrant first = Lease(quota, key.Ready(quota), 1'000, 50);
  Lease(quota, key.Ready(quota), 2'000, 20);
  EXPECT_EQ(Return(quota, key.Ready(quota), 3'000, first.at, 10).remaining, 40);
  EXPECT_EQ(Return(quota, key.Ready(quota), 3'000, 1'500, 10).remaining, 40);
  EXPECT_EQ(Return(quota, key.Ready(quota), 3'000, first.at, 90).remaining, 80);
  EXPECT_TRUE(key.valid(Algorithm::kSlidingLog));
}

TEST(Lease, ReturnsToAnAnchoredWindowOnlyWhileItLasts) {
  const Quota quota = *Quota::AnchoredWindow(10, 1s);
  Key key;
  const Decision charged = Acquire(quota, key.Ready(quota), 5, 4);
  EXPECT_EQ(charged.remaining, 6);
  const Nanos at = ChargedAt(quota, 5, charged);
  EXPECT_EQ(Return(quota, key.Ready(quota), 10, at, 1).remaining, 7);
  EXPECT_EQ(Acquire(quota, key.Ready(quota), 1'000'000'005, 10).remaining, 0);  // another window
  EXPECT_EQ(Return(quota, key.Ready(quota), 1'000'000'006, at, 1).remaining, 0);
}

TEST(LeaseTerms, SayWhatCannotBeLeasedAndWhy) {
  EXPECT_THAT(TermsFor(*Quota::Concurrency(63, 1s)).error().message, HasSubstr("at least 64"));
  EXPECT_THAT(TermsFor(*Quota::Concurrency(64, 199ms)).error().message, HasSubstr("too short"));
  EXPECT_THAT(TermsFor(*Quota::AnchoredWindow(5, 1s)).error().message,
              HasSubstr("cannot be leased"));
  EXPECT_THAT(TermsFor(*Quota::FixedWindow(5, 100ms)).error().message, HasSubstr("too short"));
  EXPECT_THAT(RateTermsFor(*Quota::FixedWindow(100, 1s)).error().message,
              HasSubstr("only the rate of a token_bucket can"));
  EXPECT_THAT(RateTermsFor(*Quota::TokenBucket(15, 1)).error().message, HasSubstr("at least 16"));
  EXPECT_THAT(RateTermsFor(*Quota::TokenBucket(100, 1, 1min)).error().message,
              HasSubstr("more than an hour"));
  EXPECT_THAT(TermsFor(*Quota::TokenBucket(3, 1)).error().message, HasSubstr("held back"));
  EXPECT_TRUE(TermsFor(*Quota::TokenBucket(4, 1)).ok());
}

TEST(LeaseTerms, CountAPermitInFlightForItsLeaseAndATerm) {
  const LeaseTerms terms = *TermsFor(*Quota::Concurrency(64, 1s));
  EXPECT_EQ(terms.term, 50'000'000);
  EXPECT_EQ(terms.quota, *Quota::Concurrency(64, 1050ms));
}

TEST(LeaseTerms, NarrowTheQuota) {
  const LeaseTerms bucket = *TermsFor(*Quota::TokenBucket(100, 10));
  EXPECT_EQ(bucket.term, 250'000'000);
  EXPECT_EQ(bucket.quota, *Quota::TokenBucket(97, 10));
  const LeaseTerms log = *TermsFor(*Quota::SlidingLog(100, 1s));
  EXPECT_EQ(log.term, 50'000'000);
  EXPECT_EQ(log.quota, *Quota::SlidingLog(100, 1050ms));
  EXPECT_EQ(TermsFor(*Quota::FixedWindow(9, 1s))->quota, *Quota::FixedWindow(9, 1s));
}

// The window was shortened since: the one of the charge is over, and another one began less
// than the old length after it.
TEST(Return, TakesNothingFromALaterWindowOfAnotherLength) {
  const Quota longer[] = {*Quota::FixedWindow(50, 1000ns), *Quota::AnchoredWindow(50, 1000ns)};
  const Quota shorter[] = {*Quota::FixedWindow(10, 100ns), *Quota::AnchoredWindow(10, 100ns)};
  for (std::size_t i = 0; i < std::size(longer); ++i) {
    SCOPED_TRACE(longer[i].ToString());
    Key key;
    ASSERT_TRUE(Acquire(longer[i], key.Ready(longer[i]), 0, 1).allowed());  // ends at 1000
    const Decision charged = Acquire(longer[i], key.Ready(longer[i]), 950, 5);
    const Nanos at = ChargedAt(longer[i], 950, charged);
    ASSERT_TRUE(Acquire(shorter[i], key.Ready(shorter[i]), 1010, 10).allowed());
    Return(longer[i], key.Ready(longer[i]), 1020, at, 5);
    EXPECT_EQ(Peek(shorter[i], key.Ready(shorter[i]), 1020, 0).remaining, 0);
  }
}

TEST(Return, TakesFromTheWindowOfTheChargeWhileItLasts) {
  const Quota quotas[] = {*Quota::FixedWindow(50, 1000ns), *Quota::AnchoredWindow(50, 1000ns)};
  const Quota shorter[] = {*Quota::FixedWindow(50, 100ns), *Quota::AnchoredWindow(50, 100ns)};
  for (std::size_t i = 0; i < std::size(quotas); ++i) {
    SCOPED_TRACE(quotas[i].ToString());
    Key key;
    ASSERT_TRUE(Acquire(quotas[i], key.Ready(quotas[i]), 0, 1).allowed());
    const Decision charged = Acquire(quotas[i], key.Ready(quotas[i]), 450, 5);
    const Nanos at = ChargedAt(quotas[i], 450, charged);
    // Also if the quota has changed, as long as the count continues.
    ASSERT_TRUE(Acquire(shorter[i], key.Ready(shorter[i]), 460, 4).allowed());
    EXPECT_EQ(Return(quotas[i], key.Ready(quotas[i]), 470, at, 5).remaining, 45);
    EXPECT_EQ(Return(quotas[i], key.Ready(quotas[i]), 1000, at, 5).remaining, 50);
  }
}

}  // namespace
}  // namespace weir::algorithm
