#include "store/sql/mark.h"

#include <gtest/gtest.h>

#include <chrono>

#include "store/sql/key_list.h"
#include "store/sql/row.h"

namespace weir::store::sql {
namespace {

class MarkTest : public ::testing::Test {
 protected:
  int lost_ = 0;
  int failed_ = 0;
  Mark mark_{{[this] { ++lost_; }, [this](const Error&) { ++failed_; }}};
};

TEST_F(MarkTest, ThatGrowsIsKept) {
  mark_.Take("a", kFirstMark + 40);
  mark_.Take("a", kFirstMark + 41);
  mark_.Take("a", kFirstMark + 99);  // other nodes raise it as well
  EXPECT_EQ(lost_, 0);
}

TEST_F(MarkTest, ThatGoesBackIsLost) {
  mark_.Take("a", kFirstMark + 40);
  mark_.Take("a", kFirstMark + 40);
  EXPECT_EQ(lost_, 1);
  mark_.Take("a", kFirstMark + 7);
  EXPECT_EQ(lost_, 2);
  mark_.Take("a", kFirstMark + 8);
  EXPECT_EQ(lost_, 2) << "it was told once";
}

TEST_F(MarkTest, OfAnotherDatabaseIsLostHoweverFarItHasGrown) {
  mark_.Take(Mark::NewState(), kFirstMark + 3);
  mark_.Take(Mark::NewState(), kFirstMark + 900);
  EXPECT_EQ(lost_, 1);
}

TEST_F(MarkTest, ThatCannotBeRaisedIsToldOnceUnlessTheServerIsAway) {
  mark_.Fail({Code::kUnavailable, "down"});
  mark_.Fail({Code::kDeadlineExceeded, "slow"});
  EXPECT_EQ(failed_, 0);
  mark_.Fail({Code::kPermissionDenied, "no"});
  mark_.Fail({Code::kPermissionDenied, "no"});
  EXPECT_EQ(failed_, 1);
}

TEST_F(MarkTest, IsDueAtOnceAndThenNotSoon) {
  EXPECT_TRUE(mark_.Due());
  EXPECT_FALSE(mark_.Due());
}

TEST(Mark, IsDueAgainAtOnceIfTheServerWasAway) {
  Mark mark({}, std::chrono::hours(1));
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded}) {
    EXPECT_TRUE(mark.Due());
    mark.Fail({code, "the connection is dead"});
  }
  EXPECT_TRUE(mark.Due());
  EXPECT_FALSE(mark.Due());
}

TEST_F(MarkTest, IsNoKey) {
  EXPECT_TRUE(Summarize("any", Mark::NewState()).algorithms.empty());
  const auto page =
      ReadKeys({.limit = 10}, [](const std::string&, std::size_t) -> Result<std::vector<RowHead>> {
        return std::vector<RowHead>{{std::string(kMarkId), Mark::NewState(), false}};
      });
  ASSERT_TRUE(page.ok());
  EXPECT_TRUE(page->keys.empty());
}

}  // namespace
}  // namespace weir::store::sql
