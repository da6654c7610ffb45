// A random trace, driven through the store and through the pure steps: every answer must be the
// same, to the last field. The trace runs in groups, so that a store that pays per round trip
// finishes in seconds; the clock moves between groups only.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "algorithm/settle.h"
#include "conformance/store/client.h"
#include "conformance/store/model.h"
#include "weir/clock.h"

namespace weir::store::conformance {
namespace {

using namespace std::chrono_literals;

/// The parameters of a trace.
struct Theme {
  std::size_t keys = 12;
  std::size_t cost = 5;               ///< of charges: less than this
  std::size_t reserves = 2;           ///< one in this many groups of charges is a reservation
  std::size_t reserved = 24;          ///< reservations that may be settled: the latest
  std::size_t upsets = 1;             ///< one in this many: resets, and overdraws of any size
  std::size_t group = 50;             ///< steps at one moment
  std::chrono::nanoseconds pause{0};  ///< between groups, at most; 0: of every magnitude
  /// For keys with even and odd numbers. A key's quotas of one algorithm differ only in their
  /// limits. With longer windows they could distinguish a state that has expired under the shorter
  /// one from a fresh key, and each store decides by itself when to drop such states.
  std::array<std::vector<Quota>, 2> quotas = {
      std::vector<Quota>{*Quota::TokenBucket(20, 7, 3s), *Quota::TokenBucket(33, 2, 1s),
                         *Quota::FixedWindow(15, 10s), *Quota::FixedWindow(40, 10s),
                         *Quota::SlidingLog(12, 7s), *Quota::SlidingLog(30, 7s),
                         *Quota::SlidingCounter(25, 10s, 10), *Quota::SlidingCounter(50, 10s, 10),
                         *Quota::Concurrency(10, 20s), *Quota::Concurrency(4, 20s),
                         *Quota::AnchoredWindow(15, 6s), *Quota::AnchoredWindow(40, 6s)},
      std::vector<Quota>{*Quota::TokenBucket(1'000'000'007, 999'999'937, 1s),
                         *Quota::FixedWindow(kMaxLimit, kMaxWindow), *Quota::SlidingLog(40, 60s),
                         *Quota::SlidingCounter(9, 7s, 3), *Quota::Concurrency(3, 2s),
                         *Quota::AnchoredWindow(kMaxLimit, kMaxWindow)}};
};

/// A group of random steps, twice: once for the store, once for the model.
class Trace {
 public:
  Trace(std::uint64_t seed, Theme theme) : random_(seed), theme_(std::move(theme)) {
    for (std::size_t i = 0; i < theme_.keys; ++i) keys_.push_back("{trace}" + std::to_string(i));
    for (const std::string& key : keys_) records_.push_back(key + std::string(kRecordMark));
  }

  void Draw(std::size_t count) {
    charges_.assign(count, {});
    stamps_.assign(count, {});
    for (auto* side : {&stores_, &models_}) {
      side->applications.assign(count, {});
      side->decisions.assign(count, std::vector<Decision>());
    }
    for (std::size_t i = 0; i < count; ++i) DrawStep(i);
  }

  std::span<Application> for_store() { return stores_.applications; }
  std::span<Application> for_model() { return models_.applications; }

  /// Records leases to release later, and reservations to settle.
  void Learn(Nanos now) {
    for (const Application& application : stores_.applications) LearnReserved(application, now);
    const auto most = static_cast<std::ptrdiff_t>(theme_.reserved);
    if (std::ssize(reserved_) > most) reserved_.erase(reserved_.begin(), reserved_.end() - most);
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      for (std::size_t c = 0; c < charges_[i].size(); ++c) {
        const std::int64_t lease = stores_.decisions[i][c].lease;
        if (lease != 0) leases_.push_back({charges_[i][c], lease});
      }
    }
    if (leases_.size() > 64) leases_.erase(leases_.begin(), leases_.end() - 64);
    for (const Application& application : stores_.applications) {
      LearnCharged(application);
      if (application.op != Op::kLease || application.granted == 0) continue;
      Charge taken = application.charges.front();
      taken.cost =
          1 + static_cast<std::int64_t>(Below(static_cast<std::size_t>(application.granted)));
      taken_.push_back({taken, application.at});
    }
    if (taken_.size() > 16) taken_.erase(taken_.begin(), taken_.end() - 16);
  }

  std::chrono::nanoseconds Pause() {
    if (theme_.pause > 0ns) {
      return std::chrono::nanoseconds(Below(static_cast<std::size_t>(theme_.pause.count())));
    }
    switch (Below(4)) {
      case 0:
        return 0ns;
      case 1:
        return std::chrono::nanoseconds(Below(1000));
      case 2:
        return std::chrono::milliseconds(Below(2000));
      default:
        return std::chrono::seconds(Below(30));
    }
  }

 private:
  struct Side {
    std::vector<Application> applications;
    std::vector<std::vector<Decision>> decisions;
  };
  struct Lease {
    Charge charge;
    std::int64_t lease;
  };

  /// What was charged together with a record, and when in the store's time.
  struct Reserved {
    std::vector<Charge> charges;
    std::vector<Nanos> stamps;
    std::int64_t lease;
  };

  /// Several charges whose first is a concurrency charge are a reservation like any other.
  void LearnReserved(const Application& application, Nanos now) {
    if (application.op != Op::kCharge || !application.applied) return;
    if (application.charges.size() < 2 || application.decisions[0].lease == 0) return;
    Reserved reserved;
    reserved.lease = application.decisions[0].lease;
    for (std::size_t i = 0; i < application.charges.size(); ++i) {
      reserved.charges.push_back(application.charges[i]);
      reserved.stamps.push_back(
          algorithm::StampOf(*application.charges[i].quota, now, application.decisions[i]));
    }
    reserved_.push_back(std::move(reserved));
  }

  /// Charges that can be refunded with the time stamp that the store returned.
  void LearnCharged(const Application& application) {
    if (application.op != Op::kCharge || !application.applied || !application.returnable) return;
    const std::size_t i = Below(application.charges.size());
    const Charge& charge = application.charges[i];
    if (charge.cost == 0 || charge.quota->algorithm() == Algorithm::kConcurrency) return;
    taken_.push_back(
        {charge, algorithm::ChargedAt(*charge.quota, application.at, application.decisions[i])});
  }

  /// The amount to settle one at, which may be settled already: less, more or what was reserved.
  std::int64_t DrawSettle(std::size_t i) {
    const Reserved& reserved = reserved_[Below(reserved_.size())];
    charges_[i] = reserved.charges;
    stamps_[i] = reserved.stamps;
    for (std::size_t c = 1; c < charges_[i].size(); ++c) {
      std::int64_t& cost = charges_[i][c].cost;
      const auto most = static_cast<std::size_t>(cost + 1);
      cost = Below(2) == 0 ? -static_cast<std::int64_t>(Below(most))
                           : static_cast<std::int64_t>(Below(4)) << (Below(8) == 0 ? 40 : 0);
    }
    return reserved.lease;
  }

  std::size_t Below(std::size_t bound) { return random_() % bound; }

  Charge DrawCharge() {
    const std::size_t key = Below(keys_.size());
    const std::vector<Quota>& quotas = theme_.quotas[key % 2];
    return {keys_[key], static_cast<std::int64_t>(Below(theme_.cost)),
            &quotas[Below(quotas.size())]};
  }

  void DrawStep(std::size_t i) {
    Op op = Op::kCharge;
    std::int64_t lease = 0;
    const std::size_t kind = Below(100);
    if (kind < 8) op = Op::kPeek;
    if (kind >= 8 && kind < 14) op = Op::kRefund;
    if (kind >= 14 && kind < 18 && Below(theme_.upsets) == 0) op = Op::kReset;
    if (kind >= 18 && kind < 28 && !leases_.empty()) op = Op::kRelease;
    if (kind >= 28 && kind < 36) op = Op::kOverdraw;
    if (kind >= 36 && kind < 44) op = Op::kLease;
    if (kind >= 44 && kind < 50 && !taken_.empty()) op = Op::kReturn;
    if (kind >= 50 && kind < 62 && !reserved_.empty()) op = Op::kSettle;
    if (op == Op::kSettle) {
      lease = DrawSettle(i);
    } else if (op == Op::kReturn) {
      const std::size_t which = Below(taken_.size());
      charges_[i].push_back(taken_[which].charge);
      lease = taken_[which].lease;
    } else if (op == Op::kLease) {
      charges_[i].push_back(DrawCharge());
      charges_[i].back().cost = static_cast<std::int64_t>(Below(60));
    } else if (op == Op::kRelease) {
      const Lease& held = leases_[Below(leases_.size())];
      charges_[i].push_back(held.charge);
      lease = held.lease;
    } else {
      const std::size_t charges = Below(3) == 0 ? 2 + Below(3) : 1;
      for (std::size_t c = 0; c < charges; ++c) charges_[i].push_back(DrawCharge());
      // Occasionally a reservation: a record first.
      if (op == Op::kCharge && charges > 1 && Below(theme_.reserves) == 0) {
        charges_[i][0] = {records_[Below(keys_.size())], 1, &record_};
      }
    }
    // Occasionally more than fits in any limit, or in the count itself.
    if (op == Op::kOverdraw && Below(4 * theme_.upsets) == 0) {
      for (Charge& charge : charges_[i]) charge.cost <<= Below(42);
    }
    const bool returnable = op == Op::kCharge && Below(2) == 0;
    for (auto* side : {&stores_, &models_}) {
      side->decisions[i].resize(charges_[i].size());
      Application& application = side->applications[i];
      application.op = op;
      application.lease = lease;
      application.returnable = returnable;
      application.charges = charges_[i];
      application.stamps = stamps_[i];
      application.decisions = side->decisions[i];
    }
  }

  std::mt19937_64 random_;
  const Theme theme_;
  std::vector<std::string> keys_;
  std::vector<std::string> records_;  // keys of records
  const Quota record_ = *Quota::Concurrency(100, 20s);
  std::vector<std::vector<Charge>> charges_;
  std::vector<std::vector<Nanos>> stamps_;
  std::vector<Reserved> reserved_;
  std::vector<Lease> leases_;
  std::vector<Lease> taken_;  // in advance, and how much of them to return
  Side stores_;
  Side models_;
};

std::string Describe(const Application& application) {
  std::string out = "op " + std::to_string(static_cast<int>(application.op));
  for (const Charge& charge : application.charges) {
    out += " [" + std::string(charge.key) + " cost " + std::to_string(charge.cost) + " " +
           charge.quota->ToString() + "]";
  }
  return out;
}

void ExpectSame(const Application& store, const Application& model) {
  SCOPED_TRACE(Describe(store));
  ASSERT_EQ(store.applied, model.applied);
  if (store.op == Op::kLease) {
    ASSERT_EQ(store.granted, model.granted);
    ASSERT_EQ(store.at, model.at);
  }
  if (store.returnable && store.applied) {
    ASSERT_EQ(store.at, model.at);
  }
  for (std::size_t i = 0; i < store.decisions.size(); ++i) {
    const Decision& got = store.decisions[i];
    const Decision& want = model.decisions[i];
    ASSERT_EQ(got.verdict, want.verdict) << i;
    ASSERT_EQ(got.limit, want.limit) << i;
    ASSERT_EQ(got.remaining, want.remaining) << i;
    ASSERT_EQ(got.retry_after, want.retry_after) << i;
    ASSERT_EQ(got.reset_after, want.reset_after) << i;
    ASSERT_EQ(got.lease, want.lease) << i;
  }
}

void RunTrace(std::size_t steps, Theme theme) {
  const std::size_t group = theme.group;
  ManualClock clock(Nanos{20'000} * 86'400 * 1'000'000'000 + 123'456'789);
  const std::unique_ptr<Backend> backend = MakeBackend(&clock);
  // Groups alternate between two nodes, so that no deciding state is kept in one of them.
  std::array<std::unique_ptr<Client>, 2> clients = {std::make_unique<Client>(*backend, 0),
                                                    std::make_unique<Client>(*backend, 1)};
  Model model(clock);
  Trace trace(20'261'116, std::move(theme));
  for (std::size_t step = 0; step < steps; step += group) {
    trace.Draw(group);
    clients[step / group % 2]->Apply(trace.for_store());
    for (std::size_t i = 0; i < group; ++i) {
      model.Apply(trace.for_model()[i]);
      SCOPED_TRACE("step " + std::to_string(step + i));
      ASSERT_NO_FATAL_FAILURE(ExpectSame(trace.for_store()[i], trace.for_model()[i]));
    }
    trace.Learn(clock.Now());
    clock.Advance(trace.Pause());
  }
}

TEST(StoreDifferential, ARandomTraceIsAnsweredAsThePureStepsDo) { RunTrace(20'000, {}); }

// Few buckets with many open reservations each, more than a bucket has marks for, which are
// full now and then.
TEST(StoreDifferential, ReservationsOfTokenBucketsAreSettledAsThePureStepsDo) {
  const auto buckets = [](std::int64_t refill) {
    return std::array<std::vector<Quota>, 2>{
        std::vector<Quota>{*Quota::TokenBucket(9000, refill, 1s),
                           *Quota::TokenBucket(11'000, refill, 1s)},
        std::vector<Quota>{*Quota::TokenBucket(10'000, 7 * refill, 9s)}};
  };
  for (const std::int64_t refill : {200, 350, 425, 500}) {
    RunTrace(2'000, {.keys = 2,
                     .cost = 40,
                     .reserves = 1,
                     .reserved = 64,
                     .upsets = 40,
                     .group = 5,
                     .pause = 200ms,
                     .quotas = buckets(refill)});
  }
}

}  // namespace
}  // namespace weir::store::conformance
