#include "net/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace weir::net {
namespace {

class DescriptorsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }

  static void Limit(rlim_t soft, rlim_t hard) {
    const rlimit limit{soft, hard};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  rlimit before_{};
};

TEST_F(DescriptorsTest, RaisesTheSoftLimitAsFarAsIsNeeded) {
  Limit(256, before_.rlim_max);
  const DescriptorBudget budget = FitToDescriptors(1'000);
  EXPECT_EQ(budget.connections, 1'000U);
  EXPECT_EQ(budget.limit, 1'000U + kReservedDescriptors);
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, 1'000U + kReservedDescriptors);
}

TEST_F(DescriptorsTest, LeavesAHigherLimitAlone) {
  Limit(before_.rlim_max, before_.rlim_max);
  EXPECT_EQ(FitToDescriptors(10).limit, before_.rlim_max);
}

TEST_F(DescriptorsTest, KeepsTheReserveWhenThereAreTooFew) {
  Limit(600, before_.rlim_max);
  // A number above any hard limit.
  const std::size_t many = std::size_t{1} << 40U;
  const DescriptorBudget budget = FitToDescriptors(many);
  EXPECT_EQ(budget.limit, before_.rlim_max);
  EXPECT_EQ(budget.connections, before_.rlim_max - kReservedDescriptors);
}

}  // namespace
}  // namespace weir::net
