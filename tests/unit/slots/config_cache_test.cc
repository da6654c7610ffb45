#include "slots/config_cache.h"

#include <gtest/gtest.h>

namespace weir::slots {
namespace {

TEST(ConfigCache, ForgetsAfterFiveSeconds) {
  ManualClock clock(1);
  ConfigCache cache(clock);
  EXPECT_FALSE(cache.Get("pay").has_value());
  cache.Put({.name = "pay", .version = 3});
  clock.Advance(std::chrono::milliseconds(4'999));
  EXPECT_EQ(cache.Get("pay")->version, 3);
  clock.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(cache.Get("pay").has_value());
}

TEST(ConfigCache, CanBeFlushed) {
  ManualClock clock(1);
  ConfigCache cache(clock);
  cache.Put({.name = "a"});
  cache.Put({.name = "b"});
  cache.Forget("a");
  EXPECT_FALSE(cache.Get("a").has_value());
  EXPECT_EQ(cache.Flush(), 1U);
  EXPECT_FALSE(cache.Get("b").has_value());
}

}  // namespace
}  // namespace weir::slots
