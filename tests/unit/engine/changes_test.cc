// Engine::SaveChanges and LoadChanges: loading everything saved restores the engine's state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000;

class ChangesTest : public ::testing::TestWithParam<KeyStorage> {
 protected:
  Engine Make(std::size_t max_keys = 10'000) {
    return Engine(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = max_keys,
                                                           .keys = GetParam(),
                                                           .clock = &clock_,
                                                           .on_evict = {},
                                                           .track_changes = true});
  }
  static std::string Identity(const Engine& engine) {
    std::string bytes;
    engine.SaveIdentity(bytes);
    return bytes;
  }
  void ExpectSame(Engine& a, Engine& b, int keys) {
    for (const Quota& quota : quotas_) {
      for (int i = 0; i < keys; ++i) {
        const std::string key = std::to_string(i);
        ASSERT_EQ(a.Peek(key, quota, 1), b.Peek(key, quota, 1)) << key << " " << quota.ToString();
      }
    }
  }

  ManualClock clock_{kStart};
  std::vector<Quota> quotas_ = {*Quota::TokenBucket(9, 7),    *Quota::FixedWindow(9, 1min),
                                *Quota::SlidingLog(9, 1min),  *Quota::SlidingCounter(9, 1min, 6),
                                *Quota::Concurrency(9, 1min), *Quota::AnchoredWindow(9, 1min)};
};

INSTANTIATE_TEST_SUITE_P(Keys, ChangesTest,
                         ::testing::Values(KeyStorage::kFingerprint, KeyStorage::kText),
                         [](const auto& test) {
                           return test.param == KeyStorage::kText ? "Text" : "Fingerprint";
                         });

TEST_P(ChangesTest, AKeyIsSavedOnceHoweverOftenItWasCharged) {
  Engine engine = Make();
  std::string saved;
  EXPECT_EQ(engine.SaveChanges(saved), 0U);
  EXPECT_EQ(saved, "");
  for (int i = 0; i < 5; ++i) engine.TryAcquire("a", quotas_[1]);
  engine.TryAcquire("b", quotas_[0]);
  EXPECT_EQ(engine.SaveChanges(saved), 2U);
  EXPECT_EQ(engine.SaveChanges(saved), 0U);
  engine.TryAcquire("a", quotas_[1], 100);  // refused
  engine.Peek("a", quotas_[1]);
  EXPECT_EQ(engine.SaveChanges(saved), 0U);
}

TEST_P(ChangesTest, AnyTraceSavedInAnyPiecesIsTakenOver) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Engine engine = Make();
    std::string saved = Identity(engine);
    for (int step = 0; step < 500; ++step) {
      const std::string key = std::to_string(random() % 40);
      const Quota& quota = quotas_[random() % quotas_.size()];
      switch (random() % 11) {
        case 0:
          engine.Refund(key, quota, 1 + random() % 3);
          break;
        case 1:
          engine.Reset(key);
          break;
        case 2:
          engine.SaveChanges(saved);
          break;
        case 3: {
          const Ask asks[] = {{key, 2, &quotas_[1]}, {"1", 1, &quotas_[2]}, {"2", 3, &quota}};
          Decision decisions[3];
          engine.TryAcquireAll(asks, decisions);
          break;
        }
        case 5: {
          const LeaseGrant grant = engine.Lease(key, quota, 3);
          if (grant.granted > 1 && random() % 2 == 0) engine.Return(key, quota, grant.at, 1);
          break;
        }
        case 6:
          engine.Overdraw(key, quota, 2);
          break;
        case 4:
          clock_.Advance(std::chrono::milliseconds(random() % 2000));
          break;
        default:
          engine.TryAcquire(key, quota, 1 + random() % 3);
      }
    }
    engine.SaveChanges(saved);
    Engine other = Make();
    ASSERT_TRUE(other.LoadChanges(saved).ok());
    ExpectSame(engine, other, 40);
    std::string again;
    EXPECT_EQ(other.SaveChanges(again), 0U) << "what was read is saved already";
  }
}

TEST_P(ChangesTest, ChangesComeOnTopOfASnapshot) {
  Engine engine = Make();
  engine.TryAcquire("a", quotas_[1], 2);
  std::ostringstream snapshot;
  ASSERT_TRUE(engine.Save(snapshot).ok());
  engine.TryAcquire("a", quotas_[1], 3);
  engine.TryAcquire("b", quotas_[0], 1);
  std::string saved;
  engine.SaveChanges(saved);
  Engine other = Make();
  std::istringstream in(snapshot.str());
  ASSERT_TRUE(other.Load(in).ok());
  ASSERT_TRUE(other.LoadChanges(saved).ok());
  EXPECT_EQ(other.Peek("a", quotas_[1], 0).remaining, 4);
  EXPECT_EQ(other.Peek("b", quotas_[0], 0).remaining, 8);
}

TEST_P(ChangesTest, ClearForgetsAllOfThem) {
  Engine engine = Make();
  std::string saved = Identity(engine);
  for (int i = 0; i < 100; ++i) engine.TryAcquire(std::to_string(i), quotas_[1], 9);
  engine.SaveChanges(saved);
  engine.Clear();
  engine.TryAcquire("5", quotas_[1], 1);
  engine.SaveChanges(saved);
  Engine other = Make();
  ASSERT_TRUE(other.LoadChanges(saved).ok());
  EXPECT_EQ(other.size(), 1U);
  ExpectSame(engine, other, 100);
}

TEST_P(ChangesTest, WhatIsDamagedOrAnothersIsRefused) {
  Engine engine = Make();
  engine.TryAcquire("a", quotas_[2], 2);
  std::string saved = Identity(engine);
  engine.SaveChanges(saved);
  for (std::size_t size = 1; size < saved.size(); ++size) {
    Engine other = Make();
    const Status loaded = other.LoadChanges(std::string_view(saved).substr(0, size));
    EXPECT_EQ(loaded.ok(), size == Identity(engine).size()) << size;
  }
  Engine other = Make();
  other.TryAcquire("b", quotas_[0]);
  const Status loaded = other.LoadChanges(saved);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("another engine"));
}

TEST_P(ChangesTest, NothingIsLostWhileOthersCharge) {
  Engine engine = Make();
  std::string saved = Identity(engine);
  std::atomic<int> running = 4;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 3000; ++i) {
        engine.TryAcquire(std::to_string(random() % 50), quotas_[random() % quotas_.size()]);
      }
      --running;
    });
  }
  while (running > 0) engine.SaveChanges(saved);
  for (std::thread& thread : threads) thread.join();
  engine.SaveChanges(saved);
  Engine other = Make();
  ASSERT_TRUE(other.LoadChanges(saved).ok());
  ExpectSame(engine, other, 50);
}

TEST_P(ChangesTest, EvictedKeysDoNoHarm) {
  Engine engine = Make(100);
  std::string saved = Identity(engine);
  for (int i = 0; i < 1000; ++i) {
    engine.TryAcquire(std::to_string(i), quotas_[i % 2 == 0 ? 0 : 2]);
    if (i % 7 == 0) engine.SaveChanges(saved);
  }
  engine.SaveChanges(saved);
  Engine other = Make(100);
  ASSERT_TRUE(other.LoadChanges(saved).ok());
  EXPECT_LE(other.size(), 100U);
}

TEST(InvalidCost, IsAnErrorAndNeitherALookNorACharge) {
  for (const Quota& quota : {*Quota::TokenBucket(5, 1), *Quota::FixedWindow(5, 1h)}) {
    Engine engine(quota);
    EXPECT_EQ(engine.TryAcquire("k", -1).verdict, Verdict::kInvalid);
    EXPECT_EQ(engine.Peek("k", -1).verdict, Verdict::kInvalid);
    engine.TryAcquire("k", 3);
    EXPECT_EQ(engine.Refund("k", -2).verdict, Verdict::kInvalid);
    EXPECT_FALSE(engine.TryAcquire("k", -1).allowed());
    EXPECT_EQ(engine.Peek("k", 0).remaining, 2);
    const Ask asks[] = {{"k", 1, nullptr}, {"l", -1, nullptr}};
    Decision decisions[2];
    EXPECT_FALSE(engine.TryAcquireAll(asks, decisions));
    EXPECT_EQ(decisions[1].verdict, Verdict::kInvalid);
    engine.TryAcquireBatch(asks, decisions);
    EXPECT_EQ(decisions[1].verdict, Verdict::kInvalid);
    EXPECT_EQ(engine.Peek("k", 0).remaining, 1);
  }
}

// Every proper prefix of a batch counts as damage, and does no harm.
TEST_P(ChangesTest, ABatchThatEndsEarlyIsDamage) {
  Engine engine = Make();
  std::string changes;
  engine.TryAcquire("ada", quotas_[1], 5);
  engine.SaveChanges(changes);
  engine.Reset("ada");
  engine.TryAcquire("bob", quotas_[0], 2);
  changes.clear();
  ASSERT_GE(engine.SaveChanges(changes), 2U) << "one is forgotten, one is new";
  for (std::size_t size = 1; size < changes.size(); ++size) {
    Engine loaded = Make();
    ASSERT_TRUE(loaded.LoadChanges(Identity(engine)).ok());
    const Status status = loaded.LoadChanges(changes.substr(0, size));
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_NE(status.error().code, Code::kFailedPrecondition) << size;
  }
  Engine loaded = Make();
  ASSERT_TRUE(loaded.LoadChanges(Identity(engine)).ok());
  EXPECT_TRUE(loaded.LoadChanges(changes).ok());
}

TEST_P(ChangesTest, KeysKeepTheirOwnQuotas) {
  Engine engine = Make();
  Engine loaded = Make();
  loaded.SetQuota("ada", quotas_[0]);
  ASSERT_TRUE(loaded.LoadChanges(Identity(engine)).ok());
  EXPECT_EQ(loaded.Peek("ada").limit, 9);
  EXPECT_EQ(loaded.Peek("bob").limit, 1);
}

TEST_P(ChangesTest, WhatIsNotABatchOrNotARecordIsDamage) {
  Engine engine = Make();
  std::string changes;
  engine.TryAcquire("ada", quotas_[1], 5);
  engine.SaveChanges(changes);
  Engine loaded = Make();
  ASSERT_TRUE(loaded.LoadChanges(Identity(engine)).ok());
  std::string magic = changes;
  magic[0] = 'X';
  EXPECT_THAT(loaded.LoadChanges(magic).error().message, HasSubstr("not a record of changes"));
  std::string record = changes;
  record[16] = 99;  // after the magic and the identity, the first record's kind
  EXPECT_THAT(loaded.LoadChanges(record).error().message, HasSubstr("an unknown record"));
  EXPECT_EQ(loaded.size(), 0U);
}

}  // namespace
}  // namespace weir
