#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kStart = 1'700'000'000'000'000'000;

class SnapshotTest : public testing::TestWithParam<KeyStorage> {
 protected:
  Engine Make(std::size_t max_keys = 1'000) {
    return Engine(quotas_[0], {.max_keys = max_keys, .keys = GetParam(), .clock = &clock_});
  }
  std::string Saved(const Engine& engine) {
    std::ostringstream out;
    EXPECT_TRUE(engine.Save(out).ok());
    return out.str();
  }
  static Status LoadFrom(Engine& engine, const std::string& bytes) {
    std::istringstream in(bytes);
    return engine.Load(in);
  }

  ManualClock clock_{kStart};
  std::vector<Quota> quotas_ = {*Quota::TokenBucket(9, 7),    *Quota::FixedWindow(9, 1min),
                                *Quota::SlidingLog(9, 1min),  *Quota::SlidingCounter(9, 1min, 6),
                                *Quota::Concurrency(9, 1min), *Quota::AnchoredWindow(9, 1min)};
};

INSTANTIATE_TEST_SUITE_P(Keys, SnapshotTest,
                         testing::Values(KeyStorage::kFingerprint, KeyStorage::kText),
                         [](const auto& test) {
                           return test.param == KeyStorage::kText ? "Text" : "Fingerprint";
                         });

TEST_P(SnapshotTest, ALoadedEngineAnswersAsTheSavedOne) {
  Engine engine = Make();
  for (int i = 0; i < 200; ++i) {
    clock_.Advance(1ms);
    for (const Quota& quota : quotas_) {
      (void)engine.TryAcquire("user:" + std::to_string(i % 40), quota, 1 + i % 3);
    }
  }
  const std::string bytes = Saved(engine);
  Engine loaded = Make(5'000);  // a table of a different size
  ASSERT_TRUE(LoadFrom(loaded, bytes).ok());
  EXPECT_EQ(loaded.size(), engine.size());
  for (int i = 0; i < 41; ++i) {
    const std::string key = "user:" + std::to_string(i);
    for (const Quota& quota : quotas_) {
      EXPECT_EQ(loaded.Peek(key, quota, 2), engine.Peek(key, quota, 2)) << key << quota.ToString();
    }
  }
}

TEST_P(SnapshotTest, OfLongKeysTheStartIsKeptAndTheyAreToldApartAllTheSame) {
  // A client that makes keys of thousands of bytes must not cost more memory than one with short
  // keys.
  const std::string start(3'990, 'k');
  Engine engine = Make();
  for (const Quota& quota : quotas_) {
    ASSERT_TRUE(engine.TryAcquire(start + "1", quota, 9).allowed());
    ASSERT_TRUE(engine.TryAcquire(start + "2", quota, 4).allowed());
  }
  Engine loaded = Make();
  ASSERT_TRUE(LoadFrom(loaded, Saved(engine)).ok());
  for (const Engine* one : {&engine, &loaded}) {
    EXPECT_EQ(one->size(), 2 * quotas_.size());
    one->Visit([](const KeyView& view) {
      EXPECT_EQ(view.key.size(), GetParam() == KeyStorage::kText ? kKeptText : 0U);
    });
  }
  for (const Quota& quota : quotas_) {
    EXPECT_EQ(loaded.Peek(start + "1", quota, 0).remaining, 0);
    EXPECT_EQ(loaded.Peek(start + "2", quota, 0).remaining, 5);
  }
}

TEST_P(SnapshotTest, AnEmptyEngineCanBeSavedAndLoaded) {
  Engine engine = Make();
  Engine loaded = Make();
  (void)loaded.TryAcquire("old");
  ASSERT_TRUE(LoadFrom(loaded, Saved(engine)).ok());
  EXPECT_EQ(loaded.size(), 0U);
}

TEST_P(SnapshotTest, EveryCutAndEveryFlippedByteIsRefusedOrHarmless) {
  Engine engine = Make();
  for (const Quota& quota : quotas_) (void)engine.TryAcquire("user:1", quota, 2);
  const std::string bytes = Saved(engine);
  Engine loaded = Make();
  for (std::size_t size = 0; size < bytes.size(); size += size < 5'000 ? 499 : 1) {
    EXPECT_FALSE(LoadFrom(loaded, bytes.substr(0, size)).ok()) << size;
    EXPECT_EQ(loaded.size(), 0U);
  }
  for (std::size_t at = 0; at < bytes.size(); at += at < 5'000 ? 499 : 1) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_FALSE(LoadFrom(loaded, damaged).ok()) << at;
    EXPECT_EQ(loaded.size(), 0U);
  }
  EXPECT_TRUE(LoadFrom(loaded, bytes).ok());
}

TEST_P(SnapshotTest, AnotherKeyStorageIsRefused) {
  Engine engine = Make();
  Engine other(quotas_[0], {.max_keys = 10,
                            .keys = GetParam() == KeyStorage::kText ? KeyStorage::kFingerprint
                                                                    : KeyStorage::kText});
  const Status status = LoadFrom(other, Saved(engine));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
}

TEST_P(SnapshotTest, ASmallerEngineKeepsWhatFits) {
  Engine engine = Make();
  for (int i = 0; i < 500; ++i) (void)engine.TryAcquire("user:" + std::to_string(i));
  Engine small = Make(100);
  ASSERT_TRUE(LoadFrom(small, Saved(engine)).ok());
  EXPECT_EQ(small.size(), 100U);
}

// The fingerprints of all keys change with the secret that a snapshot brings.
TEST_P(SnapshotTest, KeysKeepTheirOwnQuotas) {
  Engine engine = Make();
  ASSERT_TRUE(engine.TryAcquire("user:1", quotas_[0], 2).allowed());
  Engine loaded = Make(10'000);
  for (int i = 0; i < 200; ++i) {
    loaded.SetQuota("user:" + std::to_string(i), *Quota::TokenBucket(3, 7));
  }
  loaded.ClearQuota("user:2");
  ASSERT_TRUE(LoadFrom(loaded, Saved(engine)).ok());
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(loaded.Peek("user:" + std::to_string(i)).limit, i == 2 ? 9 : 3) << i;
  }
  EXPECT_EQ(loaded.Peek("user:1").remaining, 1) << "2 of 3 are spent";
  loaded.ClearQuota("user:1");
  EXPECT_EQ(loaded.Peek("user:1").limit, 9);
}

// A snapshot without keys ends in a byte for the end, the count and the checksum, 17 in total; a
// snapshot with one key is longer by its record.
TEST_P(SnapshotTest, AKeyThatComesTwiceIsDamage) {
  Engine engine = Make();
  const std::size_t empty = Saved(engine).size();
  (void)engine.TryAcquire("ada", quotas_[1], 5);
  const std::string bytes = Saved(engine);
  const std::string record = bytes.substr(empty - 17, bytes.size() - empty);
  std::string twice = bytes;
  twice.insert(empty - 17, record);
  Engine loaded = Make();
  const Status status = LoadFrom(loaded, twice);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("a key occurs twice"), std::string::npos);
  EXPECT_EQ(loaded.size(), 0U) << "half a snapshot is none";
}

TEST_P(SnapshotTest, AStreamThatTakesNothingIsAnError) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  const Status saved = Make().Save(out);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir
