// When permits end, when more are requested, and how many: by the node's clock alone.

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "store/lease/holding.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kMs = 1'000'000;

// Both have the longest term of 250 ms.
const algorithm::LeaseTerms kBucket = *algorithm::TermsFor(*Quota::TokenBucket(1000, 100));
const algorithm::LeaseTerms kWindow = *algorithm::TermsFor(*Quota::FixedWindow(1000, 10s));
constexpr Nanos kTerm = 250 * kMs;

Decision Left(std::int64_t remaining, std::chrono::nanoseconds reset_after,
              std::chrono::nanoseconds retry_after = 0ns) {
  Decision decision;
  decision.remaining = remaining;
  decision.reset_after = reset_after;
  decision.retry_after = retry_after;
  return decision;
}

Granted Grant(std::uint64_t id, std::int64_t count, Nanos now, const Decision& decision = {}) {
  return {.grant = {count, now, decision}, .id = id, .want = count, .sent = now, .now = now};
}

TEST(HoldingTerms, AreAQuarterOfASecondHere) {
  EXPECT_EQ(kBucket.term, kTerm);
  EXPECT_EQ(kWindow.term, kTerm);
}

TEST(HoldingTerms, AKeyIsIdleTwoTermsAfterItsLastCheckIfNothingIsHeldOrAskedFor) {
  Holding holding(kBucket, 0);
  EXPECT_FALSE(holding.idle(2 * kTerm));
  EXPECT_TRUE(holding.idle(2 * kTerm + 1));
  holding.Asked(10);
  EXPECT_FALSE(holding.idle(2 * kTerm + 1));
  holding.OnGrant(Grant(1, 10, 2 * kTerm), {});
  EXPECT_FALSE(holding.idle(4 * kTerm));
  holding.Surrender();
  EXPECT_TRUE(holding.idle(4 * kTerm));
}

TEST(HoldingTerms, WhatIsHeldIsSlackAQuarterOfATermAfterTheLastCheck) {
  Holding holding(kBucket, 0);
  EXPECT_FALSE(holding.slack(kTerm)) << "nothing is held";
  holding.OnGrant(Grant(1, 10, 0), {});
  EXPECT_FALSE(holding.slack(kTerm / 4));
  EXPECT_TRUE(holding.slack(kTerm / 4 + 1));
}

TEST(HoldingTerms, WhatEndsTooSoonIsNotSpentOnAChargeThatTakesTime) {
  Holding holding(kBucket, 0);
  holding.OnGrant(Grant(1, 10, 0), {});
  holding.OnGrant(Grant(2, 10, kTerm / 2), {});
  const Nanos now = 3 * kTerm / 4;
  EXPECT_EQ(holding.Available(now), 20);
  EXPECT_EQ(holding.Available(now, kTerm / 2), 10);
  std::vector<Taken> taken;
  EXPECT_FALSE(holding.Take(now, 11, kTerm / 2, 0, taken));
  EXPECT_TRUE(taken.empty());
  ASSERT_TRUE(holding.Take(now, 5, kTerm / 2, 3, taken));
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].lot, 2U);
  EXPECT_EQ(taken[0].count, 5);
  EXPECT_EQ(taken[0].position, 3U);
}

TEST(HoldingTerms, ARefundGoesToTheOldestGrantOfWhichEnoughWasSpent) {
  Holding holding(kBucket, 0);
  holding.OnGrant(Grant(1, 10, 0), {});
  std::vector<Taken> taken;
  ASSERT_TRUE(holding.Take(0, 4, 0, 0, taken));
  holding.OnGrant(Grant(2, 10, 1), {});
  EXPECT_EQ(holding.Refund(1, 3), 3);
  EXPECT_EQ(holding.held(), 19);  // 10 - 4 + 10 + 3
}

TEST(HoldingTerms, MoreIsAskedForOnceAtATimeAndHalfATermAfterAFailure) {
  Holding holding(kBucket, 0);
  for (int i = 0; i < 7; ++i) holding.Note(0, 1);
  EXPECT_FALSE(holding.ShouldAsk(0)) << "it is not busy yet";
  holding.Note(0, 1);
  EXPECT_TRUE(holding.ShouldAsk(0));
  holding.Asked(10);
  EXPECT_FALSE(holding.ShouldAsk(0));
  holding.Failed(0);
  EXPECT_FALSE(holding.ShouldAsk(kTerm / 2 - 1));
  EXPECT_TRUE(holding.ShouldAsk(kTerm / 2));
}

TEST(HoldingTerms, PermitsOfAWindowEndWithIt) {
  Holding holding(kWindow, 0);
  holding.OnGrant(Grant(1, 10, 0, Left(0, 50ms)), {});
  EXPECT_EQ(holding.Available(49 * kMs), 10);
  EXPECT_EQ(holding.Available(50 * kMs), 0);
}

// 100 permits in half a term make 125 in five eighths of one, which are 156.25 ms. A window that
// ends in 50 ms less a nanosecond has room for 40 of them; an eighth more and two are 46.
TEST(HoldingTerms, LittleIsAskedForShortlyBeforeAWindowEnds) {
  Holding holding(kWindow, 0);
  holding.Note(0, 100);
  EXPECT_EQ(holding.Want(0), 125);
  holding.OnGrant(Grant(1, 10, 0, Left(0, 200ms)), {});
  EXPECT_EQ(holding.Want(0), 125) << "there is time enough";
  holding.OnGrant(Grant(2, 10, 0, Left(0, 50ms)), {});
  EXPECT_EQ(holding.Want(0), 26) << "20 of the 46 are held";
  EXPECT_EQ(holding.Want(50 * kMs), 125) << "in the next one";
}

// The window outlasts the lease that was granted in it, but not the next one.
TEST(HoldingTerms, AWindowsEndIsKnownWhileLeasesEndBeforeIt) {
  Holding holding(kWindow, 0);
  holding.OnGrant(Grant(1, 10, 0, Left(0, 400ms)), {});
  holding.Note(370 * kMs, 100);
  EXPECT_EQ(holding.Available(370 * kMs), 0) << "the term is over";
  EXPECT_EQ(holding.Want(370 * kMs), 28) << "24 in 30 ms, an eighth more and two";
}

TEST(HoldingTerms, WhatIsHeldUntilTheWindowsEndIsEnough) {
  Holding holding(kWindow, 0);
  for (int i = 0; i < 8; ++i) holding.Note(0, 10);
  holding.OnGrant(Grant(1, 60, 0, Left(0, 50ms)), {});
  EXPECT_EQ(holding.Want(0), 0);
  EXPECT_FALSE(holding.ShouldAsk(0));
  std::vector<Taken> taken;
  ASSERT_TRUE(holding.Take(0, 56, 0, 0, taken));
  EXPECT_TRUE(holding.ShouldAsk(0));
  EXPECT_GT(holding.Want(0), 0);
}

// A region sets its own end: it is unknown which window it charged.
TEST(HoldingTerms, TheEndOfWhatARegionLendsIsNoWindowsEnd) {
  const algorithm::LeaseTerms terms =
      *algorithm::RegionTermsFor(*Quota::FixedWindow(1000, 100s), 2s);
  ASSERT_EQ(terms.term, kTerm);
  Holding holding(terms, 0);
  holding.Note(0, 100);
  holding.OnGrant(Grant(1, 10, 0, Left(0, 250ms + 1ns)), {});
  EXPECT_EQ(holding.Want(150 * kMs), 125);
}

// Permits granted and lost in transit are unavailable until their window ends or the bucket
// refills.
TEST(HoldingTerms, NoMoreThanHalfOfALimitIsAskedForAtOnce) {
  Holding holding(kWindow, 0);
  holding.Note(0, 5000);
  EXPECT_EQ(holding.Want(0), 500);
  const auto want_of = [](std::int64_t limit) {
    Holding small(*algorithm::TermsFor(*Quota::FixedWindow(limit, 10s)), 0);
    small.Note(0, 100);
    return small.Want(0);
  };
  EXPECT_EQ(want_of(1), 1);
  EXPECT_EQ(want_of(2), 1);
  EXPECT_EQ(want_of(7), 4);
  Holding bucket(kBucket, 0);
  bucket.Note(0, 5000);
  EXPECT_EQ(bucket.Want(0), 488) << "of the 975 that are leased";
}

TEST(HoldingTerms, AStoreThatGaveLessThanWasAskedForIsLeftAloneForAWhile) {
  Holding holding(kBucket, 0);
  for (int i = 0; i < 8; ++i) holding.Note(0, 100);
  Granted granted = Grant(1, 40, 0, Left(3, 10s));
  granted.want = 100;
  granted.pause = 10 * kMs;
  holding.OnGrant(granted, {});
  EXPECT_EQ(holding.held(), 40);
  EXPECT_TRUE(holding.Dry(10 * kMs - 1));
  EXPECT_FALSE(holding.Dry(10 * kMs));
  EXPECT_FALSE(holding.ShouldAsk(10 * kMs - 1));
  EXPECT_TRUE(holding.ShouldAsk(10 * kMs));
}

TEST(HoldingTerms, AStoreThatGaveNothingIsAskedWhenItWillHaveSome) {
  const auto dry_for = [](std::chrono::nanoseconds retry_after, bool patient) {
    Holding holding(kBucket, 0);
    Granted granted = Grant(1, 0, 0, Left(0, 10s, retry_after));
    granted.grant.decision.verdict = Verdict::kLimited;
    granted.want = 100;
    granted.pause = 10 * kMs;
    granted.patient = patient;
    holding.OnGrant(granted, {});
    EXPECT_EQ(holding.held(), 0);
    Nanos until = 0;
    while (holding.Dry(until)) until += kMs;
    return until / kMs;
  };
  EXPECT_EQ(dry_for(5ms, false), 5);
  EXPECT_EQ(dry_for(1h, false), 20) << "twice the pause at most";
  EXPECT_EQ(dry_for(5ms, true), 10) << "whoever has a share waits for all of it";
}

TEST(HoldingTerms, AStoreThatHasSomeAndLeasesNoneDecidesMeanwhile) {
  Holding holding(kBucket, 0);
  for (int i = 0; i < 8; ++i) holding.Note(0, 1);
  Granted granted = Grant(1, 0, 0, Left(100, 10s, 0s));
  granted.want = 10;
  granted.pause = 10 * kMs;
  EXPECT_TRUE(holding.OnGrant(granted, {}));
  EXPECT_FALSE(holding.Dry(0));
  EXPECT_FALSE(holding.ShouldAsk(10 * kMs - 1));
  EXPECT_TRUE(holding.ShouldAsk(10 * kMs));
}

TEST(HoldingTerms, WhatCameTooLateIsNotHeld) {
  Holding holding(kBucket, 0);
  Granted late = Grant(1, 10, 0);
  late.now = kTerm;
  EXPECT_FALSE(holding.OnGrant(late, {}));
  EXPECT_EQ(holding.held(), 0);
  Holding window(kWindow, 0);
  EXPECT_FALSE(window.OnGrant(Grant(1, 10, 0, Left(0, 1ns)), {}));
  EXPECT_EQ(window.held(), 0) << "its window is over";
}

TEST(HoldingTerms, OfMoreThanEightGrantsTheOldestCountsAsSpent) {
  Holding holding(kBucket, 0);
  for (std::uint64_t id = 1; id <= 9; ++id) {
    holding.OnGrant(Grant(id, static_cast<std::int64_t>(id), 0), {});
  }
  EXPECT_EQ(holding.held(), 44);  // 2 + 3 + ... + 9
  EXPECT_EQ(holding.Surrender().front().id, 2U);
}

TEST(HoldingTerms, OnlyWhatHasEndedIsLost) {
  Holding holding(kBucket, 0);
  holding.OnGrant(Grant(1, 10, 0), {});
  holding.OnGrant(Grant(2, 5, kTerm / 2), {});
  EXPECT_EQ(holding.Expire(kTerm), 10);
  EXPECT_EQ(holding.held(), 5);
}

TEST(HoldingTerms, AnswersWithoutTheStoreAreWhatItSaidLast) {
  Holding holding(kBucket, 0);
  Granted granted = Grant(1, 40, 0, Left(100, 2s));
  granted.want = 50;
  granted.pause = 10 * kMs;
  holding.OnGrant(granted, {});
  const Decision yes = holding.Estimate(0, true);
  EXPECT_TRUE(yes.allowed());
  EXPECT_EQ(yes.limit, kBucket.quota.limit());
  EXPECT_EQ(yes.remaining, 140);
  EXPECT_EQ(yes.reset_after, 2s);
  const Decision no = holding.Estimate(4 * kMs, false);
  EXPECT_EQ(no.verdict, Verdict::kLimited);
  EXPECT_EQ(no.remaining, 40);
  EXPECT_EQ(no.retry_after, 6ms);
  EXPECT_EQ(holding.Estimate(kTerm, false).retry_after, 1ns) << "never none";
}

// Each flaw that a simulation must find has the effect that its name says.
TEST(HoldingTerms, FlawsAreAsTheyAreNamed) {
  Granted late = Grant(1, 10, 0);
  late.now = 100 * kMs;
  Holding receipt(kBucket, 0);
  receipt.OnGrant(late, {.from_receipt = true});
  EXPECT_EQ(receipt.Available(300 * kMs), 10);
  Holding after(kBucket, 0);
  after.OnGrant(late, {.after_term = true});
  EXPECT_EQ(after.Available(1000 * kTerm), 10);
  Holding window(kWindow, 0);
  window.OnGrant(Grant(1, 10, 0, Left(0, 50ms)), {.past_window = true});
  EXPECT_EQ(window.Available(100 * kMs), 10);
}

}  // namespace
}  // namespace weir::store::lease
