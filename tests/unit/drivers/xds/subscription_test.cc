// The exchange with a control plane is tested with a real one in tests/integration/drivers/xds
// and tests/e2e/xds.

#include "drivers/xds/subscription.h"

#include <gmock/gmock.h>

namespace weir::xds {
namespace {

TEST(State, IsTheSameAfterItWasKept) {
  const State state{"7", {"", std::string("\0\xff", 2), "text"}};
  const auto again = ParseState(Serialize(state));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->version, state.version);
  EXPECT_EQ(again->resources, state.resources);
  EXPECT_EQ(ParseState(Serialize({"", {"b", "a"}}))->resources,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(ParseState("\xff\xff").ok());
}

TEST(Subscription, SaysOnceThatNobodyIsThereAndEndsAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> told;
  SubscriptionOptions options;
  options.server.url = "grpc://127.0.0.1:1";  // nothing listens there
  options.first_pause = std::chrono::milliseconds(1);
  options.longest_pause = std::chrono::milliseconds(1);
  options.on_state = [](const State&) { return Status(); };
  options.on_change = [&](const std::string& problem) {
    const std::lock_guard lock(mutex);
    told.push_back(problem);
    changed.notify_all();
  };
  {
    const Subscription subscription(options);
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return !told.empty(); }));
    EXPECT_FALSE(subscription.connected());
  }
  EXPECT_EQ(told.size(), 1U);
  EXPECT_THAT(told.at(0), ::testing::HasSubstr("connect"));
}

}  // namespace
}  // namespace weir::xds
