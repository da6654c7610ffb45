#include "store/route/routes.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace weir::store::route {
namespace {

std::string KeyOf(int user) { return "api/per-user|user:" + std::to_string(user); }

TEST(Routes, APolicyThatNamesAStoreIsThereAndAllOthersInTheUsualOne) {
  const Routes routes({.stores = {{0}, {1}}, .policies = {{"api/login", 1}}});
  EXPECT_EQ(routes.Of("api/login|user:1"), (Way{1, 1}));
  EXPECT_EQ(routes.Of("api/login"), (Way{1, 1}));  // one bucket for all
  EXPECT_EQ(routes.Of("api/login2|user:1"), (Way{0, 0}));
  EXPECT_EQ(routes.Of("key|user-123"), (Way{0, 0}));
  EXPECT_EQ(routes.Of("api/%override60|user:1"), (Way{0, 0}));
}

TEST(Routes, ABareKeyMayHaveAStoreOfItsOwn) {
  const Routes routes({.stores = {{0}, {1}}, .usual = 1, .keys = {{"key|vip", 0}}});
  EXPECT_EQ(routes.Of("key|vip"), (Way{0, 0}));
  EXPECT_EQ(routes.Of("key|other"), (Way{1, 1}));
}

TEST(Routes, AReservationsRecordIsBesideItsBucket) {
  const Routes routes({.stores = {{0, 1, 2, 3}}});
  for (int user = 0; user < 100; ++user) {
    EXPECT_EQ(routes.Of(KeyOf(user) + "|%reserved:0123456789abcdef"), routes.Of(KeyOf(user)));
  }
}

TEST(Routes, ShardsShareTheKeysEvenlyAndOneMoreTakesOnlyItsPart) {
  const Routes three({.stores = {{0, 1, 2}}});
  const Routes four({.stores = {{0, 1, 2, 3}}});
  constexpr int kKeys = 20'000;
  std::map<int, int> in_three;
  int moved = 0;
  for (int user = 0; user < kKeys; ++user) {
    const int before = three.Of(KeyOf(user)).member;
    const int after = four.Of(KeyOf(user)).member;
    ++in_three[before];
    if (before == after) continue;
    ++moved;
    EXPECT_EQ(after, 3);
  }
  for (const auto& [member, keys] : in_three) EXPECT_NEAR(keys, kKeys / 3, kKeys / 30) << member;
  EXPECT_NEAR(moved, kKeys / 4, kKeys / 40);
}

TEST(Routes, AMoveTakesItsShareOfTheKeysAndNeverGivesOneBack) {
  const auto with = [](std::uint32_t share, std::uint32_t done) {
    return Routes({.stores = {{0}, {1}}, .move = Move{0, 1, share, done, {}}});
  };
  constexpr int kKeys = 20'000;
  int both = 0;
  int there = 0;
  for (int user = 0; user < kKeys; ++user) {
    const Way way = with(3'000, 1'000).Of(KeyOf(user));
    EXPECT_TRUE(way == (Way{0, 0}) || way == (Way{0, 1}) || way == (Way{1, 1}));
    both += way.moving() ? 1 : 0;
    there += way.member == 1 ? 1 : 0;
    // What is being moved stays so when the share grows, and is moved when `done` reaches it.
    if (way.moving()) {
      EXPECT_TRUE(with(5'000, 1'000).Of(KeyOf(user)).moving());
      EXPECT_EQ(with(5'000, 3'000).Of(KeyOf(user)), (Way{1, 1}));
    }
  }
  EXPECT_NEAR(both, kKeys / 5, kKeys / 50);
  EXPECT_NEAR(there, kKeys / 10, kKeys / 50);
}

TEST(Routes, AMoveOfSomePoliciesLeavesTheOthers) {
  const Routes routes({.stores = {{0}, {1}}, .move = Move{0, 1, kWhole, kWhole, {"api/login"}}});
  EXPECT_EQ(routes.Of("api/login|user:1"), (Way{1, 1}));
  EXPECT_EQ(routes.Of("api/pay|user:1"), (Way{0, 0}));
}

TEST(Routes, AKeyThatStaysOnItsServerIsNotMoved) {
  // From two shards to three, of which two are the same servers.
  const Routes routes({.stores = {{0, 1}, {0, 1, 2}}, .move = Move{0, 1, kWhole, 0, {}}});
  constexpr int kKeys = 3'000;
  int moving = 0;
  for (int user = 0; user < kKeys; ++user) moving += routes.Of(KeyOf(user)).moving() ? 1 : 0;
  EXPECT_NEAR(moving, kKeys / 3, kKeys / 20);
}

TEST(Routes, PlacesNeverChangeBetweenVersions) {
  const Routes routes({.stores = {{0, 1, 2, 3, 4, 5, 6, 7}}});
  std::string places;
  for (int user = 0; user < 16; ++user) places += std::to_string(routes.Of(KeyOf(user)).member);
  EXPECT_EQ(places, "0403515617713171");
}

}  // namespace
}  // namespace weir::store::route
