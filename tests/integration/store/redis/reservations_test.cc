// Reservations of token buckets in the script, against the pure steps, where numbers are largest:
// limits to 2^40, windows to 100 years, rates with any fraction, clocks that jump and go back.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "algorithm/settle.h"
#include "conformance/store/model.h"
#include "integration/store/redis/client.h"
#include "store/store.h"
#include "support/redis_server.h"

namespace weir::store::redis {
namespace {

constexpr Nanos kDay = Nanos{86'400} * 1'000'000'000;

/// Random steps on one bucket, on the store and on the model.
class Trace {
 public:
  Trace(Client& client, ManualClock& clock, std::string key, std::uint64_t seed)
      : client_(client),
        clock_(clock),
        model_(clock),
        random_(seed),
        key_(std::move(key)),
        record_key_(key_ + std::string(kRecordMark)) {
    for (int i = 0; i < 2; ++i) quotas_.push_back(AnyQuota());
    clock_.Set(UpTo(40'000 * kDay));
  }

  void Step() {
    Move();
    const Quota& quota = quotas_[Below(12) == 0 ? 1 : 0];
    const std::int64_t most =
        Below(4) == 0 ? quota.limit() : std::max<std::int64_t>(quota.limit() / 30, 1);
    const std::int64_t cost = UpTo(most);
    switch (Below(8)) {
      case 0:
        return Ask(Op::kCharge, {{key_, cost, &quota}});
      case 1:
        return Ask(Op::kOverdraw, {{key_, Below(20) == 0 ? kMaxLimit : cost, &quota}});
      case 2:
        return Ask(Op::kRefund, {{key_, cost, &quota}});
      case 3:
        return Ask(Op::kReturn, {{key_, cost, &quota}}, clock_.Now() - Nanos(Below(1000)));
      case 4:
      case 5:
        return SettleOne();
      default:
        return ReserveSome({key_, cost, &quota});
    }
  }

  /// Reservations one after the other, costing a little more than the refill in between, so that
  /// each has seen another low; then settlements of some at little or nothing, in any order.
  void Grow(const Quota& quota) {
    for (int i = 0; i < 50; ++i) {
      clock_.Advance(std::chrono::milliseconds(Below(1500)));
      ReserveSome({key_, 1 + static_cast<std::int64_t>(Below(4)), &quota});
      if (Below(4) == 0) Ask(Op::kRefund, {{key_, 1, &quota}});
      if (testing::Test::HasFailure()) return;
    }
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
      SettleOne(/*whole=*/true);
      if (Below(4) == 0) ReserveSome({key_, 1 + static_cast<std::int64_t>(Below(4)), &quota});
    }
  }

  int settled() const { return settled_; }

 private:
  struct Reserved {
    Charge charge;
    Nanos stamp;
    std::int64_t lease;
  };

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  std::int64_t UpTo(std::int64_t most) {
    if (Below(16) == 0) return most;
    const int bits = 64 - __builtin_clzll(static_cast<std::uint64_t>(most));
    const std::uint64_t drawn = random_() >> (64 - 1 - Below(static_cast<std::uint64_t>(bits)));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(drawn), 1, most);
  }
  Quota AnyQuota() {
    for (;;) {
      const std::chrono::nanoseconds period(UpTo(kMaxWindow.count()));
      const auto quota = Quota::TokenBucket(UpTo(kMaxLimit), UpTo(kMaxLimit), period);
      if (quota.ok()) return *quota;
    }
  }

  void Move() {
    const auto step = UpTo(std::max<Nanos>(quotas_[0].window().count() / 50, 1));
    const std::uint64_t kind = Below(20);
    if (kind < 8) clock_.Set(clock_.Now() + step);
    if (kind == 8) clock_.Set(clock_.Now() - step);
  }

  void Ask(Op op, std::vector<Charge> charges, std::int64_t lease = 0,
           std::vector<Nanos> stamps = {}) {
    decisions_.assign(charges.size(), {});
    std::vector<Decision> wanted(charges.size());
    Application asked;
    asked.op = op;
    asked.charges = charges;
    asked.lease = lease;
    asked.stamps = stamps;
    asked.decisions = decisions_;
    Application want = asked;
    want.decisions = wanted;
    client_.Apply({&asked, 1});
    model_.Apply(want);
    ASSERT_TRUE(asked.status.ok()) << asked.status.error().message;
    ASSERT_EQ(asked.applied, want.applied);
    applied_ = asked.applied;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(decisions_[i], wanted[i])
          << i << " of op " << static_cast<int>(op) << " cost " << charges[i].cost << " "
          << charges[i].quota->ToString() << " remaining " << decisions_[i].remaining << " not "
          << wanted[i].remaining;
    }
  }

  void ReserveSome(const Charge& charge) {
    Ask(Op::kCharge, {{record_key_, 1, &record_}, charge});
    if (testing::Test::HasFailure() || !applied_) return;
    reserved_.push_back({charge, decisions_[1].lease, decisions_[0].lease});
  }

  void SettleOne(bool whole = false) {
    if (reserved_.empty()) return;
    const std::size_t which = Below(reserved_.size());
    Reserved reserved = reserved_[which];
    reserved_.erase(reserved_.begin() + static_cast<std::ptrdiff_t>(which));
    reserved.charge.cost = whole           ? -reserved.charge.cost
                           : Below(6) == 0 ? 1
                                           : -UpTo(reserved.charge.cost);
    Ask(Op::kSettle, {{record_key_, 1, &record_}, reserved.charge}, reserved.lease,
        {0, reserved.stamp});
    settled_ += applied_ ? 1 : 0;
  }

  Client& client_;
  ManualClock& clock_;
  conformance::Model model_;
  std::mt19937_64 random_;
  const std::string key_;
  const std::string record_key_;
  std::vector<Quota> quotas_;
  const Quota record_ = *Quota::Concurrency(1000, kMaxWindow);
  std::vector<Reserved> reserved_;
  std::vector<Decision> decisions_;
  bool applied_ = false;
  int settled_ = 0;
};

TEST(RedisReservations, TheScriptSettlesAsThePureStepDoes) {
  test::RedisServer server;
  ManualClock clock;
  Client client({.url = server.url(), .clock = &clock});
  int settled = 0;
  for (std::uint64_t round = 0; round < 200; ++round) {
    Trace trace(client, clock, "marks" + std::to_string(round), round);
    for (int step = 0; step < 120; ++step) {
      SCOPED_TRACE("round " + std::to_string(round) + " step " + std::to_string(step));
      trace.Step();
      if (testing::Test::HasFailure()) return;
    }
    settled += trace.settled();
  }
  EXPECT_GT(settled, 1500);
}

TEST(RedisReservations, MoreLowsThanMarksBecomeFewerAsThePureStepDoes) {
  test::RedisServer server;
  ManualClock clock;
  Client client({.url = server.url(), .clock = &clock});
  const std::vector<Quota> quotas = {*Quota::TokenBucket(1000, 1, std::chrono::seconds(1)),
                                     *Quota::TokenBucket(1000, 7, std::chrono::seconds(5))};
  for (std::uint64_t round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Trace trace(client, clock, "grow" + std::to_string(round), round);
    trace.Grow(quotas[round % 2]);
    EXPECT_GT(trace.settled(), 20);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace weir::store::redis
