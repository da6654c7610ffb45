// Reservations, as every store must keep them: settled from any node, once, at less or more, and
// expired after their time.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/base64url.h"
#include "conformance/store/client.h"
#include "store/reserve/reservation.h"
#include "weir/clock.h"

namespace weir::store::conformance {
namespace {

using namespace std::chrono_literals;
using reserve::Reservation;

constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000;

class StoreReservations : public testing::Test {
 protected:
  /// Reserves `cost` of buckets that belong together; empty if that was refused.
  std::string Reserve(std::vector<std::pair<std::string, Quota>> buckets, std::int64_t cost,
                      std::chrono::milliseconds lasts = 60s) {
    Reservation reservation = reserve::Begin(lasts, cost);
    reserve::Group& group = reservation.groups.emplace_back();
    for (const auto& [key, quota] : buckets) {
      group.shares.push_back({.key = key, .quota = quota, .policy = "p"});
    }
    const std::string record = reserve::RecordKey(reservation, 0);
    const Quota quota = reserve::RecordQuota(reservation);
    std::vector<Charge> charges = {{record, 1, &quota}};
    for (const reserve::Share& share : group.shares) {
      charges.push_back({share.key, cost, &share.quota});
    }
    const Client::Group charged = here_.ChargeAll(charges);
    if (!charged.applied) return {};
    reserve::Note(group, lasts, charged.decisions);
    return reserve::Write(reservation);
  }

  bool Settle(Client& client, const std::string& text, std::int64_t cost) {
    const Result<Reservation> read = reserve::Read(text);
    EXPECT_TRUE(read.ok());
    const reserve::Group& group = read->groups.front();
    const std::string record = reserve::RecordKey(*read, 0);
    const Quota quota = reserve::RecordQuota(*read);
    std::vector<Charge> charges = {{record, 1, &quota}};
    std::vector<Nanos> stamps = {0};
    for (const reserve::Share& share : group.shares) {
      charges.push_back({share.key, reserve::ChangeOf(*read, share, cost), &share.quota});
      stamps.push_back(share.stamp);
    }
    decisions_.resize(charges.size());
    Application application;
    application.op = Op::kSettle;
    application.lease = group.lease;
    application.charges = charges;
    application.stamps = stamps;
    application.decisions = decisions_;
    client.Apply({&application, 1});
    return application.applied;
  }

  ManualClock clock_{kStart};
  std::unique_ptr<Backend> backend_ = MakeBackend(&clock_);
  Client here_{*backend_, 0};
  Client there_{*backend_, 1};
  std::vector<Decision> decisions_;
};

TEST_F(StoreReservations, AreSettledOnceFromAnyNode) {
  const Quota day = *Quota::FixedWindow(100, 24h);
  const Quota bucket = *Quota::TokenBucket(1000, 1, 1s);
  const std::string text = Reserve({{"llm/day|user:1", day}, {"llm/burst|user:1", bucket}}, 60);
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(there_.Peek("llm/day|user:1", day).remaining, 40);
  clock_.Advance(10s);
  EXPECT_TRUE(Settle(there_, text, 25));
  EXPECT_EQ(decisions_[1].remaining, 75);
  EXPECT_EQ(decisions_[2].remaining, 985);  // 25 were taken, 10 refilled
  EXPECT_FALSE(Settle(here_, text, 25));
  EXPECT_FALSE(Settle(there_, text, 0));
  EXPECT_EQ(here_.Peek("llm/day|user:1", day).remaining, 75);
}

// The example of docs/design/reservations.md: at 10 s the bucket is full, so of the 30 that
// another client is charged at 20 s nothing is returned.
TEST_F(StoreReservations, WhatOthersGaveBackDoesNotMakeItTooMuch) {
  const Quota bucket = *Quota::TokenBucket(100, 1, 1s);
  const std::string first = Reserve({{"llm/burst|user:1", bucket}}, 50);
  const std::string second = Reserve({{"llm/burst|user:1", bucket}}, 10);
  EXPECT_TRUE(Settle(there_, first, 0));
  EXPECT_EQ(decisions_[1].remaining, 90);
  clock_.Advance(20s);
  EXPECT_EQ(there_.Charge("llm/burst|user:1", bucket, 30).remaining, 70);
  EXPECT_TRUE(Settle(here_, second, 0));
  EXPECT_EQ(decisions_[1].remaining, 70);
}

// Another client is charged immediately, and again after 5 s. The bucket has owed at least the 20
// ever since, so all of them are returned, and the 35 of others minus the refill stay charged.
TEST_F(StoreReservations, ChargesOfOthersStayCharged) {
  const Quota bucket = *Quota::TokenBucket(100, 1, 1s);
  const std::string text = Reserve({{"llm/burst|user:1", bucket}}, 20);
  EXPECT_EQ(there_.Charge("llm/burst|user:1", bucket, 25).remaining, 55);
  clock_.Advance(5s);
  EXPECT_EQ(here_.Charge("llm/burst|user:1", bucket, 10).remaining, 50);
  EXPECT_TRUE(Settle(there_, text, 0));
  EXPECT_EQ(decisions_[1].remaining, 70);
  EXPECT_EQ(here_.Peek("llm/burst|user:1", bucket).remaining, 70);
}

// A bucket that was reset has no record of a reservation.
TEST_F(StoreReservations, GetNothingBackFromABucketThatWasReset) {
  const Quota bucket = *Quota::TokenBucket(100, 1, 1s);
  const std::string text = Reserve({{"llm/burst|user:1", bucket}}, 20);
  here_.Reset("llm/burst|user:1", bucket);
  clock_.Advance(1s);
  EXPECT_EQ(there_.Charge("llm/burst|user:1", bucket, 30).remaining, 70);
  EXPECT_TRUE(Settle(there_, text, 0));
  EXPECT_EQ(decisions_[1].remaining, 70);
}

TEST_F(StoreReservations, MoreThanWasReservedLeavesADebt) {
  const Quota day = *Quota::FixedWindow(100, 24h);
  const std::string text = Reserve({{"llm/day|user:1", day}}, 60);
  EXPECT_TRUE(Settle(there_, text, 130));
  EXPECT_EQ(decisions_[1].verdict, Verdict::kLimited);
  EXPECT_EQ(here_.Peek("llm/day|user:1", day).remaining, 0);
}

TEST_F(StoreReservations, CountAsSpentWhenTheyAreNotSettledInTime) {
  const Quota day = *Quota::FixedWindow(100, 24h);
  const std::string text = Reserve({{"llm/day|user:1", day}}, 60, 5s);
  clock_.Advance(5s);
  EXPECT_FALSE(Settle(there_, text, 10));
  EXPECT_EQ(here_.Peek("llm/day|user:1", day).remaining, 40);
}

TEST_F(StoreReservations, RefusedOnesLeaveNothing) {
  const Quota day = *Quota::FixedWindow(100, 24h);
  const Quota minute = *Quota::SlidingLog(50, 60s);
  EXPECT_TRUE(Reserve({{"llm/day|user:1", day}, {"llm/minute|user:1", minute}}, 60).empty());
  EXPECT_EQ(here_.Peek("llm/day|user:1", day).remaining, 100);
  EXPECT_FALSE(Reserve({{"llm/day|user:1", day}, {"llm/minute|user:1", minute}}, 50).empty());
}

// The contents of the text are protected by the name of its record.
TEST_F(StoreReservations, AnAlteredTextSettlesNothing) {
  const Quota day = *Quota::FixedWindow(100, 24h);
  here_.Charge("llm/day|user:2", day, 90);
  const std::string text = Reserve({{"llm/day|user:1", day}}, 60);
  for (const auto alter :
       {+[](Reservation& r) { r.groups[0].shares[0].key = "llm/day|user:2"; },
        +[](Reservation& r) { r.cost = 90; },
        +[](Reservation& r) { r.groups[0].shares[0].factor = 2; },
        +[](Reservation& r) { ++r.groups[0].lease; }, +[](Reservation& r) { r.lasts += 1s; }}) {
    Reservation altered = *reserve::Read(text);
    alter(altered);
    EXPECT_FALSE(Settle(there_, reserve::Write(altered), 0));
  }
  EXPECT_EQ(here_.Peek("llm/day|user:1", day).remaining, 40);
  EXPECT_EQ(here_.Peek("llm/day|user:2", day).remaining, 10);
  EXPECT_TRUE(Settle(there_, text, 0));
}

// The policy was changed from hours to minutes in the meantime, and the hour is over. What others
// were charged in the minute is not returned.
TEST_F(StoreReservations, GiveNothingBackToALaterWindowOfAnotherLength) {
  struct Case {
    std::string key;
    Quota hours;
    Quota minutes;
  };
  const std::vector<Case> cases = {
      {"llm/fixed|user:1", *Quota::FixedWindow(100, 1h), *Quota::FixedWindow(10, 1min)},
      {"llm/first|user:1", *Quota::AnchoredWindow(100, 1h), *Quota::AnchoredWindow(10, 1min)}};
  for (const Case& each : cases) here_.Charge(each.key, each.hours, 1);
  clock_.Advance(58min);
  std::vector<std::string> texts;
  for (const Case& each : cases) texts.push_back(Reserve({{each.key, each.hours}}, 60, 10min));
  clock_.Advance(5min);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].key);
    ASSERT_TRUE(here_.Charge(cases[i].key, cases[i].minutes, 10).allowed());
    EXPECT_TRUE(Settle(there_, texts[i], 0));
    EXPECT_EQ(here_.Peek(cases[i].key, cases[i].minutes).remaining, 0);
  }
}

// Their buckets have no marks for settling, and their records have other names.
TEST_F(StoreReservations, TextsOfTheFirstVersionCountAsSpent) {
  const Quota bucket = *Quota::TokenBucket(100, 1, 1s);
  Reservation old = *reserve::Read(Reserve({{"llm/burst|user:1", bucket}}, 60));
  old.nonce = reserve::Begin(60s, 60).nonce;
  std::string bytes = *Base64UrlDecoded(reserve::Write(old));
  ASSERT_EQ(bytes[0], 2);
  bytes[0] = 1;
  EXPECT_FALSE(Settle(there_, Base64UrlEncoded(bytes), 0));
  EXPECT_EQ(here_.Peek("llm/burst|user:1", bucket).remaining, 40);
}

// A key without parts, as programs that share a store may use.
TEST_F(StoreReservations, GoWithKeysOfAnyShape) {
  const Quota day = *Quota::FixedWindow(100, 24h);
  for (const char* key : {"plain", "{t}plain", "lib|key", "key|user-1"}) {
    const std::string text = Reserve({{key, day}}, 60);
    ASSERT_FALSE(text.empty()) << key;
    EXPECT_TRUE(Settle(there_, text, 1)) << key;
    EXPECT_EQ(here_.Peek(key, day).remaining, 99) << key;
  }
}

}  // namespace
}  // namespace weir::store::conformance
