#include <gtest/gtest.h>

#include "random_model.h"

// Every operation on slots, in random order, on every store; and at the end no event is lost.

namespace weir::slots {
namespace {

constexpr std::uint64_t kRuns = 4;
constexpr int kSteps = 250;

class RandomOperations : public RandomModel {
 protected:
  void Step() {
    switch (Upto(17)) {
      case 0:
      case 1:
      case 2:
        return Assign();
      case 3:
        return Cancel();
      case 4:
        return Move(false);
      case 5:
        return Move(true);
      case 6: {
        const std::string config = Config();
        if (!OneIn(4)) return NewConfig(config);
        client().Deactivate(config);
        active_.erase(config);
        return;
      }
      case 7:
        return RetireSome();
      case 8:
        if (OneIn(6)) RestoreBackup();
        return;
      case 9:
      case 10:
      case 11:
        return ClaimSome(Config(), static_cast<std::size_t>(1 + Upto(8)),
                         OneIn(2) ? Upto(kWindow) : 0);
      case 12:
      case 13:
        return FinishSome();
      case 14:
        return CheckEvent(Event());
      default:
        now_ += Upto(kWindow);
    }
  }

  /// Whatever waits is delivered in the end.
  void Drain() {
    const auto waits = [](const auto& known) {
      return known.second.state == State::kScheduled || known.second.state == State::kClaimed;
    };
    for (int window = 0; window < 2'000 && std::any_of(known_.begin(), known_.end(), waits);
         ++window) {
      for (const std::string& config : Configs()) ClaimSome(config, kMaxClaim, 0);
      now_ += kWindow;
      for (int round = 0; round < 3; ++round) FinishSome();
    }
    for (const auto& [event, known] : known_) {
      EXPECT_FALSE(waits(std::pair(event, known))) << event << " was never delivered";
    }
  }

  void Run(std::uint64_t seed, bool resized) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Start(seed, resized);
    for (int step = 0; step < kSteps && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Step();
      if (step % 10 != 0) continue;
      ASSERT_EQ(client().Verify().problems, 0);
    }
    if (!HasFailure()) Drain();
    for (const auto& [event, known] : known_) CheckEvent(event);
    CheckExecutions();
  }
};

TEST_P(RandomOperations, KeepEveryPromiseWithWindowsOfOneSize) {
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) Run(seed, false);
}

TEST_P(RandomOperations, KeepEveryPromiseWhenWindowsChangeTheirSize) {
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) Run(seed, true);
}

INSTANTIATE_TEST_SUITE_P(Stores, RandomOperations, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
