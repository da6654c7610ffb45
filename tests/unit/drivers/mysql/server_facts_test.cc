#include "drivers/mysql/server_facts.h"

#include <gtest/gtest.h>

namespace weir::mysql {
namespace {

const ServerFacts kOne = {.identity = "one"};
const ServerFacts kOther = {.identity = "other"};

TEST(ServerFacts, TwoServersThatAcceptWritesAreRivals) {
  EXPECT_TRUE(AreRivals(kOne, kOther));
  EXPECT_FALSE(AreRivals(kOne, {.read_only = true, .identity = "other"}));
  EXPECT_FALSE(AreRivals({.read_only = true, .identity = "one"}, kOther));
}

TEST(ServerFacts, OneServerByTwoAddressesIsNotItsOwnRival) { EXPECT_FALSE(AreRivals(kOne, kOne)); }

TEST(ServerFacts, MembersOfOneClusterAreNotRivals) {
  const ServerFacts member = {.identity = "one", .cluster = "galera pay"};
  EXPECT_FALSE(AreRivals(member, {.identity = "other", .cluster = "galera pay"}));
  EXPECT_TRUE(AreRivals(member, {.identity = "other", .cluster = "galera test"}));
  EXPECT_TRUE(AreRivals(member, kOther));
  EXPECT_TRUE(AreRivals(kOther, member));
}

}  // namespace
}  // namespace weir::mysql
