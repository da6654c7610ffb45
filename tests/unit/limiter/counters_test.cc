#include "limiter/counters.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::limiter {
namespace {

TEST(Counters, TheRestIsAddedUpUnderOneName) {
  policy::PolicyIds ids;
  for (int i = 0; i < 5; ++i) ids.IdOf("d", "p" + std::to_string(i));
  Counters counters(ids);
  const auto one = counters.Add();
  const auto two = counters.Add();
  for (std::uint32_t id = 0; id < 5; ++id) {
    one->Raise(id, CounterTable::kAllowed);
    two->Raise(id, CounterTable::kAllowed);
    two->Raise(id, CounterTable::kLimited);
    two->SetRemaining(id, 7, 1);
  }
  const auto some = counters.Policies(2);
  ASSERT_EQ(some.size(), 3U);
  EXPECT_EQ(some[1].policy, "p1");
  EXPECT_EQ(some[1].allowed, 2U);
  EXPECT_EQ(some[1].remaining, 7U);
  EXPECT_EQ(some[2].policy, "other");
  EXPECT_EQ(some[2].allowed, 6U);
  EXPECT_EQ(some[2].limited, 3U);
  EXPECT_FALSE(some[2].remaining) << "of which one?";
  EXPECT_EQ(counters.Policies(5).size(), 5U);
  EXPECT_EQ(counters.Policies().back().policy, "p4");
}

}  // namespace
}  // namespace weir::limiter
