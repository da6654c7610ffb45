#include "algorithm/algorithms.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::algorithm {
namespace {

TEST(Algorithms, EachIsFoundByEveryNameItHas) {
  for (const Descriptor& each : kAlgorithms) {
    EXPECT_EQ(&Of(each.algorithm), &each);
    EXPECT_EQ(FindNamed(each.name), &each);
    EXPECT_EQ(FindNamed(each.type), &each);
    EXPECT_EQ(FindLetter(each.letter), &each);
    EXPECT_EQ(FindTag(static_cast<std::uint8_t>(each.algorithm)), &each);
  }
  EXPECT_EQ(FindNamed("leaky_bucket"), nullptr);
  EXPECT_EQ(FindLetter('?'), nullptr);
  EXPECT_EQ(FindTag(kCount), nullptr);
}

TEST(Algorithms, NoTwoShareAName) {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const Descriptor& each : kAlgorithms) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_TRUE(names.insert(each.type).second) << each.type;
    EXPECT_TRUE(names.insert(each.title).second) << each.title;
    EXPECT_TRUE(letters.insert(each.letter).second) << each.letter;
  }
}

TEST(Algorithms, NamesThatAreStoredSomewhereDoNotChange) {
  EXPECT_EQ(Of(Algorithm::kTokenBucket).type, "TOKEN_BUCKET");
  EXPECT_EQ(Of(Algorithm::kFixedWindow).type, "FIXED_WINDOW");
  EXPECT_EQ(Of(Algorithm::kSlidingLog).type, "SLIDING_WINDOW");
  EXPECT_EQ(Of(Algorithm::kSlidingCounter).type, "SLIDING_COUNTER");
  EXPECT_EQ(Of(Algorithm::kConcurrency).type, "CONCURRENCY");
  std::string letters;
  for (const Descriptor& each : kAlgorithms) letters += each.letter;
  EXPECT_EQ(letters.substr(0, 5), "tflcn");
}

TEST(Algorithms, TheNumbersOfAQuotaMakeItAgain) {
  for (const Descriptor& each : kAlgorithms) {
    const auto quota = each.make({.limit = 7,
                                  .refill = 3,
                                  .period = std::chrono::seconds(2),
                                  .window = std::chrono::seconds(30),
                                  .buckets = 6});
    ASSERT_TRUE(quota.ok()) << each.name;
    EXPECT_EQ(quota->algorithm(), each.algorithm);
    EXPECT_EQ(*each.make(NumbersOf(*quota)), *quota) << each.name;
    EXPECT_EQ(quota->ToString().substr(0, each.name.size() + 1), std::string(each.name) + "(");
  }
}

TEST(Algorithms, OnlyThoseWithLeasesRelease) {
  for (const Descriptor& each : kAlgorithms) {
    EXPECT_EQ(each.release != nullptr, each.leases) << each.name;
  }
}

}  // namespace
}  // namespace weir::algorithm
