#include "engine/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

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
    keys.push_back(InBucket(3, 4, n));  // all want the last bucket
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
  EXPECT_EQ(f.shard.Later(10 * kSecond - 1), 10 * kSecond);  // a thread that lost its core
  EXPECT_EQ(f.shard.Later(9 * kSecond + 1), 10 * kSecond);   // for almost a second
  EXPECT_EQ(f.shard.Later(10 * kSecond + 5), 10 * kSecond + 5);
  EXPECT_EQ(f.shard.Later(3 * kSecond), 3 * kSecond);  // the clock went back
}

}  // namespace
}  // namespace weir::engine
