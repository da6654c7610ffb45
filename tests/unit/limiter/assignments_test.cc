#include "limiter/assignments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "telemetry/metrics.h"

namespace weir::limiter {
namespace {

using ::testing::HasSubstr;

TEST(Assignments, AreFoundByTheirEntriesInAnyOrderAndByTheirKeys) {
  Assignments all;
  const auto one = all.Add("edge", {{"plan", "gold"}, {"user", "anna"}});
  const auto two = all.Add("edge", {{"plan", "gold"}, {"user", "anna"}});
  const std::array<policy::Entry, 2> entries = {{{"user", "anna"}, {"plan", "gold"}}};
  EXPECT_EQ(all.Find("edge", entries, 10).size(), 2U);
  EXPECT_EQ(all.Find("edge", entries, 1).size(), 1U);
  EXPECT_TRUE(all.Find("other", entries, 10).empty());
  all.SetKeys(*one, {"edge/per-user|user:anna"});
  EXPECT_EQ(all.FindKey("edge/per-user|user:anna", 10).size(), 1U);
  EXPECT_TRUE(all.FindKey("edge/per-user|user:ben", 10).empty());
}

TEST(Assignments, OfOtherEntriesAreOthers) {
  Assignments all;
  const auto one = all.Add("edge", {{"plan", "gold"}, {"user", "anna"}});
  const std::array<policy::Entry, 1> fewer = {{{"user", "anna"}}};
  EXPECT_TRUE(all.Find("edge", fewer, 10).empty());
  const std::array<policy::Entry, 2> value = {{{"user", "ben"}, {"plan", "gold"}}};
  EXPECT_TRUE(all.Find("edge", value, 10).empty());
  const std::array<policy::Entry, 2> name = {{{"user", "anna"}, {"tier", "gold"}}};
  EXPECT_TRUE(all.Find("edge", name, 10).empty());
}

TEST(Assignments, EndWithTheirLastPointer) {
  Assignments all;
  const std::array<policy::Entry, 1> entries = {{{"user", "anna"}}};
  for (int i = 0; i < 5000; ++i) all.Add("edge", {{"user", "anna"}});
  EXPECT_TRUE(all.Find("edge", entries, 10).empty());
}

TEST(Assignments, AreSummedUpWithoutThoseThatNoPolicyLimits) {
  Assignments all;
  const auto one = all.Add("edge", {{"user", "anna"}});
  const auto two = all.Add("edge", {{"user", "ben"}});
  const auto unlimited = all.Add("edge", {{"user", "carla"}});
  one->per_second = 30;
  two->per_second = 12;
  unlimited->per_second = kUnlimitedPerSecond;
  std::string text;
  telemetry::TextWriter out(text);
  all.Collect(out);
  EXPECT_THAT(text, HasSubstr("\nweir_rlqs_assigned_per_second 42\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_rlqs_buckets 3\n"));
}

TEST(Assignments, AreReadWhileTheyChange) {
  Assignments all;
  const std::array<policy::Entry, 1> entries = {{{"user", "anna"}}};
  std::thread writer([&all] {
    for (int i = 0; i < 2000; ++i) {
      const auto assigned = all.Add("edge", {{"user", "anna"}});
      assigned->per_second = i;
      all.SetKeys(*assigned, {"key" + std::to_string(i)});
    }
  });
  for (int i = 0; i < 200; ++i) {
    for (const auto& found : all.Find("edge", entries, 10)) EXPECT_GE(found->per_second, 0);
    EXPECT_LE(all.FindKey("key7", 10).size(), 1U);
    std::string text;
    telemetry::TextWriter out(text);
    all.Collect(out);
  }
  writer.join();
}

}  // namespace
}  // namespace weir::limiter
