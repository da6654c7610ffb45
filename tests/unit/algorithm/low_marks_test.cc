// Token buckets with many reservations open at a time, settled in any order, among charges,
// overdraws, refunds and returns of leases. The expected result is computed by charging the
// whole story again to a fresh key, every settled reservation at its real cost at its own time.

#include "algorithm/low_marks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "algorithm/lease.h"
#include "algorithm/settle.h"

namespace weir::algorithm {
namespace {

using namespace std::chrono_literals;
using token_bucket::Span;

constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000 + 123'456'789;
constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kLasts = kMaxWindow.count();  // longer than any story

/// A bucket in a separate buffer.
class Key {
 public:
  explicit Key(const Quota& quota) : quota_(quota) {}

  State& Ready() {
    bytes_.resize(std::max<std::size_t>(bytes_.size(), CapacityForReserve(quota_, state_)));
    state_ = {bytes_.data(), state_.size, static_cast<std::uint32_t>(bytes_.size())};
    return state_;
  }
  Decision Charge(Nanos now, std::int64_t cost) { return Acquire(quota_, Ready(), now, cost); }
  Decision Owe(Nanos now, std::int64_t cost) { return Overdraw(quota_, Ready(), now, cost); }
  Decision Estimate(Nanos now, std::int64_t cost, Nanos lasts = kLasts) {
    return Reserve(quota_, Ready(), now, cost, lasts);
  }
  /// Settles at `less` permits less; returns the permits left.
  std::int64_t SettleLess(Nanos now, const Decision& reserved, std::int64_t less) {
    return Settle(quota_, Ready(), now, reserved.lease, -less).remaining;
  }
  Span debt(Nanos now) const { return token_bucket::Debt(quota_, ReadTokenBucket(state_), now); }
  std::uint32_t size() const { return state_.size; }
  bool valid() const { return Valid(quota_.algorithm(), std::span(bytes_.data(), state_.size)); }

 private:
  Quota quota_;
  std::vector<std::uint8_t> bytes_;
  State state_;
};

/// An operation on a bucket.
struct Event {
  enum class Kind : std::uint8_t { kCharge, kRefund, kReturn, kReserve };

  Kind kind = Kind::kCharge;
  Nanos at = 0;
  std::int64_t cost = 0;  // kReserve: the estimate; once it is settled, at most that
  Nanos leased_at = 0;    // kReturn
  Nanos stamp = 0;        // kReserve
  bool open = false;      // kReserve
};

/// The parameters of a story.
struct Plot {
  int most_open = static_cast<int>(low_marks::kMostMarks);  ///< reservations open at a time
  bool clock_jumps = false;                                 ///< backward
  std::int64_t costs = 5;                                   ///< maximum: the limit divided by this
  std::int64_t pauses = 4;  ///< maximum: the time to fill divided by this
};

/// Random traces of one key.
class Story {
 public:
  Story(const Quota& quota, std::uint64_t seed, const Plot& plot)
      : quota_(quota), key_(quota), random_(seed), plot_(plot) {
    now_ = kStart + Below(1'000'000'000'000);
  }

  void Step() {
    now_ += Pause();
    const std::int64_t some = 1 + Below(std::max<std::int64_t>(quota_.limit() / plot_.costs, 1));
    switch (Below(9)) {
      case 0:
      case 1:
        if (key_.Charge(now_, some).allowed()) Note({.cost = some});
        break;
      case 2:
        key_.Owe(now_, some);
        Note({.cost = some});
        break;
      case 3:
        Refund(quota_, key_.Ready(), now_, some);
        Note({.kind = Event::Kind::kRefund, .cost = some});
        break;
      case 4:
        ReturnLease(some);
        break;
      case 5:
      case 6:
        if (open() < plot_.most_open) ReserveSome(some);
        break;
      default:
        SettleOne();
    }
  }

  /// What the key would owe now if every settled reservation had been charged its real cost.
  Span Wanted() const {
    Key key(quota_);
    for (const Event& event : events_) {
      if (event.kind == Event::Kind::kRefund) {
        Refund(quota_, key.Ready(), event.at, event.cost);
      } else if (event.kind == Event::Kind::kReturn) {
        Return(quota_, key.Ready(), event.at, event.leased_at, event.cost);
      } else {
        key.Owe(event.at, event.cost);
      }
    }
    return key.debt(now_);
  }

  Span Got() const { return key_.debt(now_); }
  const Key& key() const { return key_; }
  int settled() const { return settled_; }
  int given_back() const { return given_back_; }

 private:
  std::int64_t Below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  Nanos Pause() {
    const Nanos window = quota_.window().count();
    switch (Below(plot_.clock_jumps ? 6 : 5)) {
      case 0:
      case 1:
        return 0;
      case 2:
        return Below(1000);
      case 3:
        return Below(window / plot_.pauses / 5 + 1);
      case 4:
        return Below(window / plot_.pauses + 1);
      default:
        return -Below(window / plot_.pauses + 1);
    }
  }
  void Note(Event event) {
    event.at = now_;
    events_.push_back(event);
  }
  int open() const {
    return static_cast<int>(
        std::ranges::count_if(events_, [](const Event& event) { return event.open; }));
  }

  void ReturnLease(std::int64_t some) {
    const Event* const charge = events_.empty() ? nullptr : &events_[Below(std::ssize(events_))];
    if (charge == nullptr || charge->kind != Event::Kind::kCharge) return;
    const Nanos at = charge->at;
    Return(quota_, key_.Ready(), now_, at, some);
    Note({.kind = Event::Kind::kReturn, .cost = some, .leased_at = at});
  }

  void ReserveSome(std::int64_t some) {
    const Decision reserved = key_.Estimate(now_, some);
    if (!reserved.allowed()) return;
    Note({.kind = Event::Kind::kReserve, .cost = some, .stamp = reserved.lease, .open = true});
  }

  void SettleOne() {
    std::vector<Event*> all;
    for (Event& event : events_) {
      if (event.open) all.push_back(&event);
    }
    if (all.empty()) return;
    Event& event = *all[static_cast<std::size_t>(Below(std::ssize(all)))];
    const std::int64_t cost = Below(4) == 0 ? 0 : Below(event.cost + event.cost / 4 + 1);
    const Span before = key_.debt(now_);
    Settle(quota_, key_.Ready(), now_, event.stamp, cost - event.cost);
    if (key_.debt(now_) < before) ++given_back_;
    const std::int64_t more = std::max<std::int64_t>(cost - event.cost, 0);
    event.cost = std::min(event.cost, cost);
    event.open = false;
    if (more > 0) Note({.cost = more});
    ++settled_;
  }

  const Quota quota_;
  Key key_;
  std::mt19937_64 random_;
  const Plot plot_;
  Nanos now_ = 0;
  std::vector<Event> events_;
  int settled_ = 0;
  int given_back_ = 0;
};

// Their permits take whole nanoseconds.
const std::vector<Quota>& WholeQuotas() {
  static const std::vector<Quota> quotas = {
      *Quota::TokenBucket(100, 1, 1s),
      *Quota::TokenBucket(5, 1, 10ns),
      *Quota::TokenBucket(100'000, 100'000, 24h),
  };
  return quotas;
}

const std::vector<Quota>& PartQuotas() {
  static const std::vector<Quota> quotas = {
      *Quota::TokenBucket(50, 7, 3s),
      *Quota::TokenBucket(1'000'000, 999'937, 60s),
      *Quota::TokenBucket(40, 3, 10ns),
  };
  return quotas;
}

struct Seen {
  int settled = 0;
  int given_back = 0;
};

/// Runs `check(wanted, got, settled)` after each step of many stories.
template <typename Check>
Seen Tell(const Quota& quota, const Plot& plot, Check check) {
  Seen seen;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Story story(quota, seed, plot);
    for (int i = 0; i < 60; ++i) {
      story.Step();
      const std::string where =
          quota.ToString() + " seed " + std::to_string(seed) + " step " + std::to_string(i);
      check(story.Wanted(), story.Got(), story.settled(), where);
      if (!story.key().valid()) ADD_FAILURE() << "invalid: " << where;
      if (testing::Test::HasFailure()) return seen;
    }
    seen.settled += story.settled();
    seen.given_back += story.given_back();
  }
  return seen;
}

TEST(LowMarks, ManyReservationsLeaveWhatTheirRealCostsWouldHaveLeft) {
  for (const Quota& quota : WholeQuotas()) {
    const Seen seen = Tell(quota, {}, [](Span want, Span got, int, const std::string& where) {
      EXPECT_EQ(got.ns, want.ns) << where;
      EXPECT_EQ(got.frac, want.frac) << where;
    });
    EXPECT_GT(seen.settled, 2'000) << quota.ToString();
    EXPECT_GT(seen.given_back, 500) << quota.ToString();
  }
}

// A low is rounded down when it is recorded, and once for each settlement since.
TEST(LowMarks, FractionsCostNanosecondsAndNeverGiveAny) {
  for (const Quota& quota : PartQuotas()) {
    const Seen seen =
        Tell(quota, {}, [](Span want, Span got, int settled, const std::string& where) {
          EXPECT_FALSE(got < want) << where;
          const auto most = static_cast<std::uint64_t>(settled * (settled + 1));
          EXPECT_LE(got.ns, want.ns + most) << where;
        });
    EXPECT_GT(seen.given_back, 500) << quota.ToString();
  }
}

void ExpectNothingTooMuch(const Quota& quota, const Plot& plot) {
  const Seen seen = Tell(quota, plot, [](Span want, Span got, int, const std::string& where) {
    EXPECT_FALSE(got < want) << where;
  });
  EXPECT_GT(seen.given_back, 500) << quota.ToString();
}

// In long stories of small costs the debt grows, so that there are more lows than marks.
TEST(LowMarks, NeitherMoreLowsThanMarksNorAClockThatGoesBackGiveTooMuch) {
  for (const auto& quotas : {WholeQuotas(), PartQuotas()}) {
    for (const Quota& quota : quotas) {
      for (const bool jumps : {false, true}) {
        ExpectNothingTooMuch(quota, {.most_open = 1000, .clock_jumps = jumps});
      }
    }
  }
  for (const std::int64_t pauses : {500, 1000, 4000}) {
    ExpectNothingTooMuch(*Quota::TokenBucket(100'000, 1, 1s),
                         {.most_open = 1000, .costs = 1000, .pauses = pauses});
  }
}

// 100 permits, one a second. After 10 s another client is charged 50 and half of it is refunded:
// the bucket has owed 10 of the 20 at the lowest, and without the reservation it would owe 25.
TEST(LowMarks, ARefundCountsAsALow) {
  Key key(*Quota::TokenBucket(100, 1, 1s));
  const Decision reserved = key.Estimate(kStart, 20);
  key.Charge(kStart + 10 * kSecond, 50);
  EXPECT_EQ(
      Refund(*Quota::TokenBucket(100, 1, 1s), key.Ready(), kStart + 10 * kSecond, 25).remaining,
      65);
  EXPECT_EQ(key.SettleLess(kStart + 10 * kSecond, reserved, 20), 75);
}

// All at one moment: 10 are reserved and refunded by another client, so the bucket is full, then 10
// more are reserved. The first settlement returns nothing, the second all of its own.
TEST(LowMarks, ReservationsOfOneNanosecondAreToldApart) {
  const Quota quota = *Quota::TokenBucket(100, 1, 1s);
  Key key(quota);
  const Decision first = key.Estimate(kStart, 10);
  Refund(quota, key.Ready(), kStart, 10);
  const Decision second = key.Estimate(kStart, 10);
  EXPECT_NE(first.lease, second.lease);
  EXPECT_EQ(key.SettleLess(kStart, first, 10), 90);
  EXPECT_EQ(key.SettleLess(kStart, second, 10), 100);
}

// An overdraft beyond 100 years is not counted, so nothing of it can be returned either.
TEST(LowMarks, ABucketThatOwesTheMostGivesNothingBack) {
  const Quota quota = *Quota::TokenBucket(100, 1, 1s);
  Key key(quota);
  const Decision reserved = key.Estimate(kStart, 10);
  const auto most = static_cast<std::uint64_t>(kMaxWindow.count());
  key.Owe(kStart, kMaxLimit);
  EXPECT_EQ(key.debt(kStart).ns, most);
  key.SettleLess(kStart, reserved, 10);
  EXPECT_EQ(key.debt(kStart).ns, most);
}

TEST(LowMarks, GoWhenNoReservationIsOpenAnyMore) {
  Key key(*Quota::TokenBucket(1000, 1, 1s));
  key.Estimate(kStart, 100, 60 * kSecond);
  EXPECT_EQ(key.size(), 52U);
  key.Charge(kStart + 59 * kSecond, 1);
  EXPECT_EQ(key.size(), 52U);
  key.Charge(kStart + 60 * kSecond, 1);
  EXPECT_EQ(key.size(), kTokenBucketBytes);
}

// 10 are reserved each second: lows of 9, 18, 27, … and each is less than what can be returned by
// then.
TEST(LowMarks, TakeBoundedRoom) {
  const Quota quota = *Quota::TokenBucket(1000, 1, 1s);
  Key key(quota);
  std::vector<Decision> reserved;
  for (Nanos i = 0; i < 40; ++i) {
    reserved.push_back(key.Estimate(kStart + i * kSecond, 10));
    EXPECT_LE(key.size(), low_marks::kMostBytes);
    EXPECT_TRUE(key.valid());
  }
  EXPECT_EQ(key.size(), low_marks::kMostBytes);
  // 400 were charged and 39 refilled. The latest gets all of its own back.
  EXPECT_EQ(key.SettleLess(kStart + 39 * kSecond, reserved.back(), 10), 649);
}

// The same 40, of which the first `settled` are settled at nothing and the others stay: without the
// settled ones, all that was refilled up to the last of them would have overflowed.
TEST(LowMarks, WhereThereAreMoreLowsThanMarksTheLowerOnesCount) {
  const Quota quota = *Quota::TokenBucket(1000, 1, 1s);
  const Nanos end = kStart + 39 * kSecond;
  for (std::size_t settled = 0; settled <= 40; ++settled) {
    Key key(quota);
    Key real(quota);
    std::vector<Decision> reserved;
    for (std::size_t i = 0; i < 40; ++i) {
      const Nanos at = kStart + static_cast<Nanos>(i) * kSecond;
      reserved.push_back(key.Estimate(at, 10));
      if (i >= settled) real.Owe(at, 10);
    }
    for (std::size_t i = 0; i < settled; ++i) key.SettleLess(end, reserved[i], 10);
    EXPECT_GE(key.debt(end).ns, real.debt(end).ns) << settled;
    EXPECT_LE(key.debt(end).ns, real.debt(end).ns + 20 * kSecond) << settled;
  }
}

// A thousand reservations open at a time, settled in any order: far more than there are marks, and
// the bucket ends with what their real costs would have left. If made within a second, it lacks
// less than a hundredth of what was returned.
TEST(LowMarks, ABurstOfAnyNumberIsSettled) {
  const Quota quota = *Quota::TokenBucket(1'000'000, 100, 1s);
  std::mt19937_64 random(7);
  for (const auto& [percent, pause] :
       {std::pair(0, 0), std::pair(40, 0), std::pair(0, 1'000'000), std::pair(40, 1'000'000)}) {
    Key key(quota);
    Key real(quota);
    std::vector<std::pair<Decision, std::int64_t>> reserved;
    for (int i = 0; i < 1000; ++i) {
      const Nanos at = kStart + Nanos{i} * pause;
      const std::int64_t estimate = 10 * (1 + static_cast<std::int64_t>(random() % 90));
      reserved.emplace_back(key.Estimate(at, estimate), estimate);
      real.Owe(at, estimate * percent / 100);
    }
    EXPECT_LE(key.size(), low_marks::kMostBytes);
    std::ranges::shuffle(reserved, random);
    const Nanos later = kStart + kSecond;
    const std::uint64_t before = key.debt(later).ns;
    for (const auto& [decision, estimate] : reserved) {
      key.SettleLess(later, decision, estimate - estimate * percent / 100);
    }
    const std::uint64_t want = real.debt(later).ns;
    EXPECT_GE(key.debt(later).ns, want) << percent;
    EXPECT_LE(key.debt(later).ns, want + (pause == 0 ? 0 : (before - want) / 100)) << percent;
  }
}

TEST(LowMarks, AreValidOnlyAsAStepWritesThem) {
  const Quota quota = *Quota::TokenBucket(100, 1, 1s);
  Key key(quota);
  key.Estimate(kStart, 10);
  key.Estimate(kStart + kSecond, 10);
  const State& state = key.Ready();
  const std::vector<std::uint8_t> good(state.data, state.data + state.size);
  ASSERT_EQ(good.size(), 76U);
  ASSERT_TRUE(Valid(Algorithm::kTokenBucket, good));
  const auto with = [&](std::size_t at, std::int64_t value) {
    std::vector<std::uint8_t> bytes = good;
    Store(bytes.data() + at, value);
    return Valid(Algorithm::kTokenBucket, bytes);
  };
  EXPECT_FALSE(with(28, Load<Nanos>(good.data() + 20)));  // a stamp at the floor
  EXPECT_FALSE(with(52, Load<Nanos>(good.data() + 28)));  // the same stamp twice
  EXPECT_FALSE(with(36, 0));                              // a low of zero
  EXPECT_FALSE(with(60, Load<Nanos>(good.data() + 36)));  // the same low twice
  EXPECT_FALSE(with(44, -1));                             // a negative amount is open
  EXPECT_FALSE(with(12, std::numeric_limits<Nanos>::max()));
  EXPECT_FALSE(with(20, std::numeric_limits<Nanos>::min()));
  EXPECT_FALSE(with(52, std::numeric_limits<Nanos>::max()));
  for (const std::size_t size : {13, 27, 29, 51, 75}) {
    EXPECT_FALSE(Valid(Algorithm::kTokenBucket, std::span(good).first(size))) << size;
  }
  EXPECT_TRUE(Valid(Algorithm::kTokenBucket, std::span(good).first(28)));
  std::vector<std::uint8_t> longer = good;
  Store(longer.data() + 60, Nanos{10'000'000'000});
  for (std::uint32_t i = 2; i <= low_marks::kMostMarks; ++i) {
    EXPECT_TRUE(Valid(Algorithm::kTokenBucket, longer)) << i;
    const std::size_t at = longer.size();
    longer.resize(at + low_marks::kMarkBytes);
    Store(longer.data() + at, Load<Nanos>(longer.data() + at - 24) + 1);
    Store(longer.data() + at + 8, Load<Nanos>(longer.data() + at - 16) + 1);
  }
  EXPECT_FALSE(Valid(Algorithm::kTokenBucket, longer));
}

}  // namespace
}  // namespace weir::algorithm
