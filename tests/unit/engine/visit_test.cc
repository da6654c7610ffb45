// Visits, while checks go on.

#include <gtest/gtest.h>

#include <string>

#include "weir/engine.h"

namespace weir {
namespace {

TEST(Visit, HoldsUpNobodyWhileItShowsAKey) {
  for (const KeyStorage keys : {KeyStorage::kText, KeyStorage::kFingerprint}) {
    Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = 1'000, .keys = keys});
    for (int i = 0; i < 100; ++i) (void)engine.TryAcquire("k" + std::to_string(i));
    std::size_t seen = 0;
    engine.Visit([&](const KeyView& view) {
      ++seen;
      EXPECT_EQ(view.key.empty(), keys == KeyStorage::kFingerprint);
      for (int i = 0; i < 100; ++i) (void)engine.TryAcquire("k" + std::to_string(i), 0);
    });
    EXPECT_EQ(seen, 100U);
  }
}

}  // namespace
}  // namespace weir
