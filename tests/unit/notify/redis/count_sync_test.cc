#include "notify/redis/count_sync.h"

#include <gmock/gmock.h>

namespace weir::notify::redis {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class CountSyncTest : public testing::Test {
 protected:
  std::vector<std::vector<CountDelta>> calls_;
  std::vector<KeyedSend> keyed_;
  std::vector<Accepted> accepted_;
  CountSync sync_{[this](std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                         const std::vector<Accepted>& accepted) {
    calls_.push_back(std::move(deltas));
    keyed_ = std::move(keyed);
    accepted_ = accepted;
  }};

  void Send(const std::string& user, Micros window) {
    sync_.Begin(user);
    sync_.Confirm(user, window);
  }
};

TEST_F(CountSyncTest, AddsSendsOfAUserTogether) {
  Send("a", 1);
  Send("a", 1);
  Send("b", 1);
  sync_.Flush();
  ASSERT_THAT(calls_, SizeIs(1));
  ASSERT_THAT(calls_[0], SizeIs(2));
  EXPECT_EQ(calls_[0][0].user_id, "a");
  EXPECT_EQ(calls_[0][0].sends, 2);
  EXPECT_TRUE(sync_.HasUnsynced("a"));
  sync_.Synced(true);
  EXPECT_FALSE(sync_.HasUnsynced("a"));
  EXPECT_TRUE(sync_.idle());
}

TEST_F(CountSyncTest, HasOneCallUnderWay) {
  Send("a", 1);
  sync_.Flush();
  Send("a", 1);
  sync_.Flush();
  EXPECT_THAT(calls_, SizeIs(1));
  sync_.Synced(true);
  EXPECT_TRUE(sync_.HasUnsynced("a"));
  sync_.Flush();
  EXPECT_THAT(calls_, SizeIs(2));
  sync_.Synced(true);
  EXPECT_TRUE(sync_.idle());
}

TEST_F(CountSyncTest, KeepsWhatCouldNotBeAdded) {
  Send("a", 1);
  sync_.Remember({"a", "k", 0, {}});
  sync_.Flush();
  sync_.Synced(false);
  EXPECT_FALSE(sync_.idle());
  Send("a", 1);
  sync_.Flush();
  EXPECT_EQ(calls_[1][0].sends, 2);
  EXPECT_THAT(keyed_, SizeIs(1));
}

TEST_F(CountSyncTest, TwoWindowsOfAUserGoInTwoCalls) {
  Send("a", 1);
  Send("a", 2);
  sync_.Flush();
  EXPECT_THAT(calls_[0], SizeIs(1));
  sync_.Synced(true);
  sync_.Flush();
  EXPECT_EQ(calls_[1][0].window_start, 2);
  sync_.Synced(true);
  EXPECT_TRUE(sync_.idle());
}

TEST_F(CountSyncTest, ASendUnderWayIsUnsyncedUntilItFailsOrIsAdded) {
  sync_.Begin("a");
  EXPECT_TRUE(sync_.HasUnsynced("a"));
  sync_.Flush();
  EXPECT_THAT(calls_, IsEmpty());
  sync_.Fail("a");
  EXPECT_TRUE(sync_.idle());
}

}  // namespace
}  // namespace weir::notify::redis
