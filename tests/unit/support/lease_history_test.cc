#include "fault/stores/lease_history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace weir::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kStart = 1'700'000'000'000 * kMs;

CheckRecord Admitted(std::int64_t from_ms, std::int64_t to_ms) {
  return {kStart + from_ms * kMs, kStart + to_ms * kMs, true};
}

// One permit, and another every 100 ms.
const Quota kOne = *Quota::TokenBucket(1, 1, 100ms);

TEST(LeaseHistory, EachAdmissionIsPlacedBetweenItsSendingAndItsAnswer) {
  EXPECT_EQ(Unexplained(kOne, {Admitted(0, 10), Admitted(50, 101)}), std::nullopt);
  EXPECT_NE(Unexplained(kOne, {Admitted(0, 10), Admitted(50, 60)}), std::nullopt);
  EXPECT_NE(Unexplained(kOne, {Admitted(50, 60), Admitted(50, 60)}), std::nullopt);
}

// The one sent first was decided last.
TEST(LeaseHistory, WhatCouldWaitMakesRoomForWhatCouldNot) {
  EXPECT_EQ(Unexplained(kOne, {Admitted(0, 300), Admitted(50, 60)}), std::nullopt);
  EXPECT_EQ(Unexplained(kOne, {Admitted(0, 300), Admitted(0, 290), Admitted(50, 60)}),
            std::nullopt);
  EXPECT_NE(Unexplained(kOne, {Admitted(0, 300), Admitted(0, 140), Admitted(50, 60)}),
            std::nullopt);
  const Quota log = *Quota::SlidingLog(1, 100ms);
  EXPECT_EQ(Unexplained(log, {Admitted(0, 300), Admitted(50, 60)}), std::nullopt);
  EXPECT_NE(Unexplained(log, {Admitted(0, 140), Admitted(50, 60)}), std::nullopt);
}

}  // namespace
}  // namespace weir::test
