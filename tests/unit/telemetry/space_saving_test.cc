#include "telemetry/space_saving.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace weir::telemetry {
namespace {

TEST(SpaceSaving, CountsExactlyWhileThereIsRoom) {
  SpaceSaving sketch(3);
  sketch.Add("a", 1, 7);
  sketch.Add("b", 5);
  sketch.Add("a", 2, 8);
  EXPECT_EQ(sketch.Find("a")->count, 3U);
  EXPECT_EQ(sketch.Find("a")->error, 0U);
  EXPECT_EQ(sketch.Find("a")->tag, 8U);
  EXPECT_EQ(sketch.Find("c"), nullptr);
  EXPECT_EQ(sketch.floor(), 0U);  // there is room: a text that is absent was never added
}

TEST(SpaceSaving, ANewcomerInheritsTheSmallestCountAsItsError) {
  SpaceSaving sketch(2);
  sketch.Add("a", 5);
  sketch.Add("b", 2);
  sketch.Add("c", 1);  // replaces b: 2 + 1, of which 2 may not be its own
  EXPECT_EQ(sketch.Find("b"), nullptr);
  EXPECT_EQ(sketch.Find("c")->count, 3U);
  EXPECT_EQ(sketch.Find("c")->error, 2U);
  EXPECT_EQ(sketch.Find("a")->count, 5U);
  EXPECT_EQ(sketch.floor(), 3U);
}

TEST(SpaceSaving, KeepsItsPromisesOnAStreamOfManyTexts) {
  constexpr std::size_t kCapacity = 64;
  constexpr std::uint64_t kTotal = 100'000;
  SpaceSaving sketch(kCapacity);
  std::map<std::string, std::uint64_t> exact;
  std::mt19937 random(1);
  std::geometric_distribution<int> common(0.05);
  for (std::uint64_t i = 0; i < kTotal; ++i) {
    // Half of the stream are frequent texts, the other half never repeats.
    const std::string text =
        i % 2 == 0 ? "hot" + std::to_string(common(random)) : "once" + std::to_string(i);
    sketch.Add(text, 1);
    ++exact[text];
  }
  EXPECT_EQ(sketch.entries().size(), kCapacity);
  for (const auto& entry : sketch.entries()) {
    EXPECT_GE(entry.count, exact[entry.text]) << entry.text;
    EXPECT_LE(entry.count - entry.error, exact[entry.text]) << entry.text;
    EXPECT_LE(entry.error, kTotal / kCapacity) << entry.text;  // the error's bound: N / m
  }
  for (const auto& [text, count] : exact) {
    if (count <= kTotal / kCapacity) continue;
    EXPECT_NE(sketch.Find(text), nullptr) << text;
  }
}

}  // namespace
}  // namespace weir::telemetry
