// Envoys that spend as much as they can of what QuotaBucket assigns them: their admissions are
// compared with what was charged for them, and with the bound of docs/design/rlqs.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

#include "algorithm/state.h"
#include "protocol/grpc/quota_bucket.h"
#include "weir/quota.h"

namespace weir::grpc {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
using Seconds = std::chrono::seconds;

QuotaFacts Limited(std::int64_t per_second, std::int64_t remaining) {
  return {.limited = true, .per_second = per_second, .remaining = remaining};
}

// An Envoy as observed in reality: its bucket carries over, grows in proportion, and starts full
// after an expiry or a denial of everything. It admits as much as it can.
class GreedyEnvoy {
 public:
  void Receive(Nanos now, std::int64_t rate) {
    Fill(now);
    const bool fresh = rate_ == 0 || now > until_;
    const auto size = static_cast<double>(rate);
    tokens_ = fresh ? size : tokens_ * size / static_cast<double>(rate_);
    rate_ = rate;
    until_ = now + 3 * kSecond;
  }
  std::int64_t Spend(Nanos now) {
    Fill(now);
    if (now > until_ || rate_ == 0) return 0;
    const auto spent = static_cast<std::int64_t>(tokens_);
    tokens_ -= static_cast<double>(spent);
    return spent;
  }

 private:
  void Fill(Nanos now) {
    const Nanos to = std::min(now, until_);
    if (to > at_) tokens_ += static_cast<double>(rate_) * static_cast<double>(to - at_) / 1e9;
    tokens_ = std::min(tokens_, static_cast<double>(rate_));
    at_ = std::max(at_, now);
  }
  std::int64_t rate_ = 0;
  double tokens_ = 0;
  Nanos at_ = 0;
  Nanos until_ = 0;
};

struct Held {
  QuotaBucket bucket{0};
  GreedyEnvoy envoy;
  Nanos pushed = 0;
  std::int64_t charged = 0;
  std::int64_t spent = 0;
};

/// One simulated second of a handful of Envoys on one limit. Admissions are replayed through the
/// exact step with T = 2.5 s more of capacity, as docs/design/rlqs.md states, and no Envoy is
/// ever ahead of what was charged for it.
void Simulate(std::uint32_t seed) {
  std::minstd_rand random(seed);
  const auto draw = [&random](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  const std::int64_t rate = draw(5, 400);
  const std::int64_t capacity = rate * draw(1, 6);
  const Quota quota = *Quota::TokenBucket(capacity, rate);
  const Quota bound = *Quota::TokenBucket(capacity + rate * 5 / 2 + 5, rate);
  algorithm::State store, oracle;
  std::array<std::uint8_t, 64> store_bytes{}, oracle_bytes{};
  store.data = store_bytes.data();
  store.capacity = store_bytes.size();
  oracle.data = oracle_bytes.data();
  oracle.capacity = oracle_bytes.size();
  std::vector<Held> all(static_cast<std::size_t>(draw(1, 4)));
  std::int64_t admitted = 0;
  Nanos now = 1000 * kSecond;
  for (int step = 0; step < 400; ++step) {
    now += draw(20, 100) * 1'000'000;
    for (Held& held : all) {
      if (draw(0, 9) == 0 || now - held.pushed > 1'100'000'000) {
        held.pushed = now;
        auto ask = held.bucket.Begin(now);
        for (;;) {
          const Decision decision = ask.cost == 0 ? algorithm::Peek(quota, store, now, 0)
                                                  : algorithm::Acquire(quota, store, now, ask.cost);
          if (decision.allowed()) held.charged += ask.cost;
          const auto next =
              held.bucket.OnAnswer(now, Limited(rate, decision.remaining), decision.allowed());
          if (!next) break;
          ask = *next;
        }
        held.bucket.Pushed(now);
        held.envoy.Receive(now, held.bucket.rate());
      }
      if (draw(0, 3) == 0) continue;
      const std::int64_t spent = held.envoy.Spend(now);
      admitted += spent;
      held.spent += spent;
      ASSERT_LE(held.spent, held.charged) << "seed " << seed << ", step " << step;
      if (spent == 0) continue;
      ASSERT_TRUE(algorithm::Acquire(bound, oracle, now, spent).allowed())
          << "seed " << seed << ", step " << step << ", rate " << rate << ", capacity " << capacity;
    }
  }
  EXPECT_GT(admitted, 0) << "seed " << seed;
}

/// The same for a store that takes up to three seconds for an answer while time passes. In the
/// long run each Envoy has spent no more than was charged for it, plus what would be charged if it
/// ended now.
void SimulateSlowStore(std::uint32_t seed) {
  std::minstd_rand random(seed);
  const auto draw = [&random](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  const std::int64_t rate = draw(5, 400);
  const Quota quota = *Quota::TokenBucket(rate * draw(3, 6), rate);
  const std::int64_t slowest = draw(1, 3'000);
  std::array<std::uint8_t, 64> bytes{};
  algorithm::State store;
  store.data = bytes.data();
  store.capacity = bytes.size();
  Held held;
  std::optional<QuotaBucket::Ask> ask;
  Nanos answered = 0;
  Nanos now = 1000 * kSecond;
  for (int step = 0; step < 2'000; ++step) {
    now += draw(20, 100) * 1'000'000;
    const auto wait = [&] { answered = now + draw(0, slowest) * 1'000'000; };
    if (!ask && now - held.pushed > 800'000'000) {
      ask = held.bucket.Begin(now);
      wait();
    }
    if (ask && now >= answered) {
      const Decision decision = ask->cost == 0 ? algorithm::Peek(quota, store, now, 0)
                                               : algorithm::Acquire(quota, store, now, ask->cost);
      if (decision.allowed()) held.charged += ask->cost;
      ask = held.bucket.OnAnswer(now, Limited(rate, decision.remaining), decision.allowed());
      if (ask) {
        wait();
      } else {
        held.bucket.Pushed(now);
        held.envoy.Receive(now, held.bucket.rate());
        held.pushed = now;
      }
    }
    held.spent += held.envoy.Spend(now);
  }
  EXPECT_GT(held.spent, 0) << "seed " << seed;
  held.spent += held.envoy.Spend(now);
  EXPECT_LE(held.spent, held.charged + held.bucket.Abandon(now)) << "seed " << seed;
}

TEST(QuotaSimulation, ASlowStoreLetsNothingPassThatIsNotCharged) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) SimulateSlowStore(seed);
}

TEST(QuotaSimulation, ManyEnvoysTogetherKeepTheStatedBound) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    Simulate(seed);
    if (HasFatalFailure()) return;
  }
}

/// Three Envoys that each want the whole limit; the last one starts when the others have used
/// everything. Returns what each was admitted in the second half of two minutes.
std::array<std::int64_t, 3> Share(std::int64_t rate, std::int64_t capacity, std::uint32_t seed) {
  std::minstd_rand random(seed);
  const auto draw = [&random](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  const Quota quota = *Quota::TokenBucket(capacity, rate);
  std::array<std::uint8_t, 64> bytes{};
  algorithm::State store;
  store.data = bytes.data();
  store.capacity = bytes.size();
  std::array<Held, 3> all;
  std::array<std::int64_t, 3> admitted{};
  for (Nanos at = 0; at < 120 * 50; ++at) {  // steps of 20 ms
    const Nanos now = 1000 * kSecond + at * 20'000'000;
    for (std::size_t i = 0; i < 3; ++i) {
      Held& held = all[i];
      if (i == 2 && at < 20 * 50) continue;
      if (now >= held.pushed) {
        held.pushed = now + draw(700, 1000) * 1'000'000;
        held.bucket.Report(now, Seconds(5), static_cast<std::uint64_t>(rate) * 10);
        auto ask = held.bucket.Begin(now);
        for (;;) {
          const Decision decision = ask.cost == 0 ? algorithm::Peek(quota, store, now, 0)
                                                  : algorithm::Acquire(quota, store, now, ask.cost);
          const auto next =
              held.bucket.OnAnswer(now, Limited(rate, decision.remaining), decision.allowed());
          if (!next) break;
          ask = *next;
        }
        held.bucket.Pushed(now);
        held.envoy.Receive(now, held.bucket.rate());
      }
      const std::int64_t spent = held.envoy.Spend(now);
      if (at >= 60 * 50) admitted[i] += spent;
    }
  }
  return admitted;
}

TEST(QuotaSimulation, EnvoysThatWantMoreThanThereIsShareIt) {
  for (const std::int64_t rate : {30, 300, 30'000}) {
    for (const std::int64_t seconds : {2, 10}) {
      const auto admitted = Share(rate, rate * seconds, 7);
      const std::int64_t all = admitted[0] + admitted[1] + admitted[2];
      SCOPED_TRACE(std::to_string(rate) + " a second, capacity of " + std::to_string(seconds) +
                   " s: " + std::to_string(admitted[0]) + ", " + std::to_string(admitted[1]) +
                   ", " + std::to_string(admitted[2]));
      EXPECT_GE(all, rate * 60 * 3 / 4);
      for (const std::int64_t one : admitted) {
        EXPECT_GE(one, all / 5);
        EXPECT_LE(one, all / 2);
      }
    }
  }
}

}  // namespace
}  // namespace weir::grpc
