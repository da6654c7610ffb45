#include "notify/retry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

namespace weir::notify {
namespace {

using std::chrono::milliseconds;

/// Returns the scripted answers, and then ok.
class ScriptedProvider final : public Provider {
 public:
  explicit ScriptedProvider(std::vector<Code> errors) : errors_(std::move(errors)) {}
  Status Deliver(const Event& /*event*/) override {
    const std::size_t call = calls_++;
    if (call >= errors_.size()) return {};
    return Error{errors_[call], "scripted"};
  }
  std::size_t calls() const { return calls_; }

 private:
  std::vector<Code> errors_;
  std::size_t calls_ = 0;
};

constexpr RetryPolicy kQuick{
    .attempts = 3, .first_pause = milliseconds(1), .longest_pause = milliseconds(2)};

TEST(Retry, PausesDoubleUpToTheLongest) {
  const RetryPolicy policy{
      .attempts = 9, .first_pause = milliseconds(200), .longest_pause = milliseconds(1000)};
  EXPECT_EQ(LongestPause(policy, 1), milliseconds(200));
  EXPECT_EQ(LongestPause(policy, 2), milliseconds(400));
  EXPECT_EQ(LongestPause(policy, 3), milliseconds(800));
  EXPECT_EQ(LongestPause(policy, 4), milliseconds(1000));
  EXPECT_EQ(LongestPause(policy, 1'000'000), milliseconds(1000));
}

TEST(Retry, TriesAgainUntilItWorks) {
  ScriptedProvider provider({Code::kUnavailable, Code::kDeadlineExceeded});
  EXPECT_TRUE(DeliverWithRetries(provider, {}, kQuick, {}).status);
  EXPECT_EQ(provider.calls(), 3);
}

TEST(Retry, GivesUpAfterTheLastAttempt) {
  ScriptedProvider provider(std::vector<Code>(9, Code::kUnavailable));
  EXPECT_FALSE(DeliverWithRetries(provider, {}, kQuick, {}).status);
  EXPECT_EQ(provider.calls(), 3);
}

TEST(Retry, DoesNotRepeatWhatCannotHelp) {
  ScriptedProvider provider({Code::kInvalidArgument});
  const Status status = DeliverWithRetries(provider, {}, kQuick, {}).status;
  ASSERT_FALSE(status);
  EXPECT_FALSE(MayHelpToRetry(status.error()));
  EXPECT_EQ(provider.calls(), 1);
}

TEST(Retry, AsksAfterEachPauseWhetherAnotherHasDelivered) {
  ScriptedProvider provider(std::vector<Code>(9, Code::kUnavailable));
  const RetryPolicy often{
      .attempts = 9, .first_pause = milliseconds(1), .longest_pause = milliseconds(1)};
  int asked = 0;
  const Tried tried =
      DeliverWithRetries(provider, {}, often, {}, {}, [&](const Event&) { return ++asked == 2; });
  EXPECT_TRUE(tried.settled);
  EXPECT_EQ(tried.attempts, 2);
  EXPECT_EQ(provider.calls(), 2);
}

TEST(Retry, AStopWhileAskingDeliversNothingMore) {
  ScriptedProvider provider(std::vector<Code>(9, Code::kUnavailable));
  std::stop_source stop;
  const auto unknown = [&](const Event&) {
    stop.request_stop();
    return false;
  };
  const Tried tried = DeliverWithRetries(provider, {}, kQuick, stop.get_token(), {}, unknown);
  ASSERT_FALSE(tried.status);
  EXPECT_TRUE(MayHelpToRetry(tried.status.error()));
  EXPECT_FALSE(tried.settled);
  EXPECT_EQ(provider.calls(), 1);
}

TEST(Retry, AStopEndsThePause) {
  ScriptedProvider provider(std::vector<Code>(9, Code::kUnavailable));
  const RetryPolicy slow{
      .attempts = 9, .first_pause = std::chrono::hours(1), .longest_pause = std::chrono::hours(1)};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(DeliverWithRetries(provider, {}, slow, stop.get_token()).status);
  EXPECT_EQ(provider.calls(), 1);
}

}  // namespace
}  // namespace weir::notify
