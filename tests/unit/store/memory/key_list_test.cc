#include "store/memory/key_list.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <string>

namespace weir::store::memory {
namespace {

/// This thread's CPU time, and how often it has yielded the processor.
rusage Used() {
  rusage used = {};
  getrusage(RUSAGE_THREAD, &used);
  return used;
}

std::chrono::microseconds WorkOf(const rusage& used) {
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

TEST(MemoryKeyList, IsSortedWhateverThePage) {
  Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = 10'000, .keys = KeyStorage::kText});
  for (int i = 100; i < 350; ++i) (void)engine.TryAcquire("k" + std::to_string(i));
  (void)engine.TryAcquire("other");
  KeyList list(engine, 150);
  KeyQuery query{.prefix = "k", .limit = 100};
  int next = 100;
  for (int pages = 1; pages <= 3; ++pages) {
    const KeyPage page = list.Read(query);
    for (const HeldKey& held : page.keys) EXPECT_EQ(held.key, "k" + std::to_string(next++));
    EXPECT_EQ(page.next.empty(), pages == 3);
    query.cursor = page.next;
  }
  EXPECT_EQ(next, 350);
}

TEST(MemoryKeyList, LosesNoAlgorithmOfAKeyBetweenTwoPages) {
  Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = 100, .keys = KeyStorage::kText});
  for (const char* key : {"a", "b", "c"}) {
    (void)engine.TryAcquire(key);
    (void)engine.TryAcquire(key, *Quota::FixedWindow(10, std::chrono::hours(1)));
  }
  std::size_t found = 0;
  KeyList list(engine, 3);
  KeyQuery query{.limit = 3};
  do {
    const KeyPage page = list.Read(query);
    ASSERT_FALSE(page.keys.empty());
    found += page.keys.size();
    query.cursor = page.next;
  } while (!query.cursor.empty());
  EXPECT_EQ(found, 6U);
}

TEST(MemoryKeyList, KeepsWhatItFoundForThePagesAfterAndLooksAgainForTheFirst) {
  Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = 100, .keys = KeyStorage::kText});
  for (const char* key : {"a", "c", "e"}) (void)engine.TryAcquire(key);
  KeyList list(engine);
  const auto read = [&list](std::string cursor, std::string prefix = {}) {
    std::string keys;
    for (const HeldKey& held :
         list.Read({.cursor = std::move(cursor), .prefix = std::move(prefix), .limit = 2}).keys) {
      keys += held.key;
    }
    return keys;
  };
  EXPECT_EQ(read(""), "ac");
  (void)engine.TryAcquire("d");
  EXPECT_EQ(read("c"), "e") << "found for the page before";
  EXPECT_EQ(read("a", "d"), "d") << "not found for it";
  EXPECT_EQ(read("c"), "de");
  (void)engine.TryAcquire("b");
  EXPECT_EQ(read(""), "ab");
}

// A shutdown waits for the read in progress, which would pause most of the time.
TEST(MemoryKeyList, FindsNothingAndPausesNoMoreWhenItIsStopped) {
  Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = 400'000, .keys = KeyStorage::kText});
  for (int i = 0; i < 300'000; ++i) (void)engine.TryAcquire("user-" + std::to_string(i));
  KeyList list(engine);
  list.Stop();
  const rusage before = Used();
  EXPECT_TRUE(list.Read({}).keys.empty());
  EXPECT_LT(Used().ru_nvcsw - before.ru_nvcsw, 5) << "pauses";
}

TEST(MemoryKeyList, LeavesTheProcessorToOthers) {
  Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = 400'000, .keys = KeyStorage::kText});
  for (int i = 0; i < 300'000; ++i) (void)engine.TryAcquire("user-" + std::to_string(i));
  const rusage before = Used();
  EXPECT_EQ(KeyList(engine).Read({}).keys.size(), 100U);
  const rusage after = Used();
  // A pause per millisecond, or per stretch of work between clock readings on a slow machine.
  const auto worked = WorkOf(after) - WorkOf(before);
  const auto pauses = after.ru_nvcsw - before.ru_nvcsw;
  EXPECT_LT(worked, pauses * std::chrono::milliseconds(10)) << worked.count() << " us";
}

}  // namespace
}  // namespace weir::store::memory
