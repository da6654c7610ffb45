#include "drivers/redis/slot.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(RedisSlot, IsTheChecksumOfTheKey) {
  // The checksum's published check value: "123456789" gives 0x31C3 = 12739.
  EXPECT_EQ(SlotOf("123456789"), 12739);
  EXPECT_EQ(SlotOf(""), 0);
}

TEST(RedisSlot, IsThatOfTheFirstTag) {
  EXPECT_EQ(SlotOf("a{123456789}b"), 12739);
  EXPECT_EQ(SlotOf("{123456789}{x}"), 12739);
  EXPECT_EQ(SlotOf("{{123456789}"), SlotOf("x{{123456789}y"));
  EXPECT_NE(SlotOf("{}123456789"), SlotOf("123456789"));  // an empty tag does not count
}

}  // namespace
}  // namespace weir::redis
