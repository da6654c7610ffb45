#include "engine/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "engine/box.h"

namespace weir::engine {
namespace {

/// A shard of `buckets` buckets with its memory.
struct Fixture {
  explicit Fixture(std::uint32_t buckets) : memory(buckets) {
    shard.Adopt(memory.data(), buckets, nullptr);
  }
  std::vector<Bucket> memory;
  Shard shard;
};

/// The n-th fingerprint that belongs to a bucket.
Fingerprint InBucket(std::uint32_t bucket, std::uint32_t buckets, std::uint32_t n) {
  for (std::uint64_t high = 0;; ++high) {
    const Fingerprint f{high << 32 | n, n};
    if (Shard::HomeIndex(f, buckets) == bucket) return f;
  }
}

TEST(Shard, KeysThatOverflowTheirBucketAreFoundAgain) {
  Fixture f(4);
  std::vector<Fingerprint> keys;
  for (std::uint32_t n = 0; n < 20; ++n)
    keys.push_back(InBucket(3, 4, n));  // all hash to the last bucket
  for (const Fingerprint& key : keys) ASSERT_TRUE(f.shard.Insert(key, false));
  EXPECT_TRUE(f.shard.full());
  for (const Fingerprint& key : keys) EXPECT_TRUE(f.shard.Find(key));
  EXPECT_FALSE(f.shard.Find(InBucket(3, 4, 99)));
}

TEST(Shard, ErasingLeavesTheOthersReachableAndTheProbeShort) {
  Fixture f(8);
  for (std::uint32_t n = 0; n < 12; ++n) (void)f.shard.Insert(InBucket(0, 8, n), false);
  for (std::uint32_t n = 0; n < 12; n += 2) f.shard.Erase(f.shard.Find(InBucket(0, 8, n)));
  for (std::uint32_t n = 1; n < 12; n += 2) EXPECT_TRUE(f.shard.Find(InBucket(0, 8, n))) << n;
  for (std::uint32_t n = 1; n < 12; n += 2) f.shard.Erase(f.shard.Find(InBucket(0, 8, n)));
  for (const Bucket& bucket : f.memory) {
    EXPECT_EQ(bucket.overflow, 0);
    EXPECT_EQ(bucket.used, 0);
  }
}

TEST(Shard, BehavesAsAMapUnderRandomInsertsAndErasures) {
  constexpr std::uint32_t kBuckets = 6;
  Fixture f(kBuckets);
  std::map<std::uint32_t, std::int64_t> model;
  std::mt19937 random(42);
  for (int step = 0; step < 100'000; ++step) {
    const auto n = static_cast<std::uint32_t>(random() % 60);
    const Fingerprint key = InBucket(n % 3 == 0 ? 5 : n % kBuckets, kBuckets, n);
    const Shard::Place place = f.shard.Find(key);
    ASSERT_EQ(static_cast<bool>(place), model.contains(n));
    if (place) {
      ASSERT_EQ(place.slot().word, model[n]);
      f.shard.Erase(place);
      model.erase(n);
    } else if (!f.shard.full()) {
      f.shard.Insert(key, false).slot().word = step;
      model[n] = step;
    }
  }
}

TEST(Shard, KeysThatAreCountedUpAreSpreadEvenly) {
  // The hash is linear, so counted keys get arithmetic progressions for fingerprints. For any step
  // the 64 cells must get about 125 of 8,000 each; 6 standard deviations are 67.
  std::mt19937_64 random(7);
  for (int draw = 0; draw < 200; ++draw) {
    const std::uint64_t step = random();
    std::vector<int> buckets(64);
    std::vector<int> shards(64);
    for (std::uint64_t i = 0; i < 8'000; ++i) {
      const Fingerprint f{i * step, 0};
      ++buckets[Shard::HomeIndex(f, 64)];
      ++shards[(f.Spread() & 0xFFFFFFFF) * 64 >> 32];
    }
    for (const int count : buckets) EXPECT_NEAR(count, 125, 67) << step;
    for (const int count : shards) EXPECT_NEAR(count, 125, 67) << step;
  }
}

TEST(Shard, IsNotAskedAtAnOldTimeUnlessTheClockReallyWentBack) {
  Fixture f(1);
  constexpr Nanos kSecond = 1'000'000'000;
  EXPECT_EQ(f.shard.Later(10 * kSecond), 10 * kSecond);
  EXPECT_EQ(f.shard.Later(10 * kSecond - 1), 10 * kSecond);  // a thread that was descheduled
  EXPECT_EQ(f.shard.Later(9 * kSecond + 1), 10 * kSecond);   // for almost a second
  EXPECT_EQ(f.shard.Later(10 * kSecond + 5), 10 * kSecond + 5);
  EXPECT_EQ(f.shard.Later(3 * kSecond), 3 * kSecond);  // the clock went back
}

TEST(Shard, ABucketThatOverflowedMoreOftenThanItCountsStaysMarked) {
  constexpr std::uint32_t kBuckets = 80;
  Fixture f(kBuckets);
  constexpr std::uint32_t kKeys = 300;  // 5 stay in their own bucket, 295 overflow
  for (std::uint32_t n = 0; n < kKeys; ++n) (void)f.shard.Insert(InBucket(0, kBuckets, n), false);
  EXPECT_EQ(f.memory[0].overflow, 255);
  for (std::uint32_t n = 0; n < kKeys; ++n) {
    ASSERT_TRUE(f.shard.Find(InBucket(0, kBuckets, n))) << n;
    if (n % 2 == 0) f.shard.Erase(f.shard.Find(InBucket(0, kBuckets, n)));
  }
  EXPECT_EQ(f.memory[0].overflow, 255) << "how many there were is not known any more";
  for (std::uint32_t n = 0; n < kKeys; ++n) {
    EXPECT_EQ(static_cast<bool>(f.shard.Find(InBucket(0, kBuckets, n))), n % 2 == 1) << n;
  }
}

TEST(Shard, ATokenBucketIsFreshWhenItIsFullToTheFraction) {
  Fixture f(1);
  const Shard::Place place = f.shard.Insert(InBucket(0, 1, 1), false);
  place.slot().word = 100;
  EXPECT_FALSE(Shard::IsFresh(place, 99));
  EXPECT_TRUE(Shard::IsFresh(place, 100));
  place.slot().extra = 1;
  EXPECT_FALSE(Shard::IsFresh(place, 100));
  EXPECT_TRUE(Shard::IsFresh(place, 101));
}

// Of 100 buckets, 16 are searched for a key to evict, and more only until one is found.
TEST(Shard, ALargeShardIsSearchedAStretchAtATime) {
  constexpr std::uint32_t kBuckets = 100;
  Fixture f(kBuckets);
  constexpr Nanos kNow = 50;
  const auto insert = [&f](std::uint32_t bucket, Nanos full_at) {
    const Fingerprint key = InBucket(bucket, kBuckets, bucket);
    f.shard.Insert(key, false).slot().word = full_at;
    return key;
  };
  EXPECT_FALSE(f.shard.FindVictim(kNow, {}).place) << "there is nothing to lose";
  const Fingerprint far = insert(80, 100);
  const Shard::Victim only = f.shard.FindVictim(kNow, {});
  ASSERT_TRUE(only.place);
  EXPECT_FALSE(only.fresh);
  EXPECT_EQ(only.place.slot().fingerprint(), far);
  // The hand is past it now. Its own stretch has a key in use, the fresh one is beyond.
  insert(85, 100);
  const Fingerprint fresh = insert(30, 10);
  const Shard::Victim near = f.shard.FindVictim(kNow, {});
  ASSERT_TRUE(near.place);
  EXPECT_FALSE(near.fresh);
  bool found = false;
  for (int i = 0; i < 10 && !found; ++i) {
    const Shard::Victim next = f.shard.FindVictim(kNow, {});
    found = next.fresh && next.place.slot().fingerprint() == fresh;
  }
  EXPECT_TRUE(found) << "it goes round from call to call";
}

TEST(CoarseTimes, BeginWithTheEpoch) {
  EXPECT_EQ(CoarseTime(-5), 0U);
  EXPECT_EQ(CoarseTime(0), 0U);
  EXPECT_EQ(CoarseTime((Nanos{1} << 32) - 1), 0U);
  EXPECT_EQ(CoarseTime(Nanos{3} << 32), 3U);
}

TEST(Boxes, KeepTheirTextAndAnEmptyStateWhenTheyGrow) {
  Box* box = Box::Make(Algorithm::kSlidingLog, "ada", 8);
  box = Box::Resized(box, 64);
  EXPECT_EQ(box->key(), "ada");
  EXPECT_EQ(box->size(), 0U);
  EXPECT_EQ(box->capacity(), 64U);
  Box::Free(box);
}

}  // namespace
}  // namespace weir::engine
