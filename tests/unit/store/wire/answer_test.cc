#include "store/wire/answer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace weir::store::wire {
namespace {

using namespace std::chrono_literals;

class AnswerTest : public ::testing::Test {
 protected:
  AnswerTest() {
    for (std::size_t i = 0; i < 3; ++i) {
      charges_.push_back({"key", 1, &quota_});
      theirs_[i].decisions = {&their_decisions_[i], 1};
      ours_[i].decisions = {&our_decisions_[i], 1};
      ours_[i].charges = {charges_.data(), 1};
      pointers_[i] = &ours_[i];
    }
    their_decisions_[0] = {Verdict::kLimited, 10, -3, 5s, std::chrono::nanoseconds::max(), 17};
    theirs_[0].estimated = true;
    theirs_[1].op = ours_[1].op = Op::kLease;
    theirs_[1].applied = true;
    theirs_[1].granted = 40;
    theirs_[1].at = std::numeric_limits<Nanos>::max();
    theirs_[2].status = Error{Code::kUnavailable, "the store is down"};
  }

  const Quota quota_ = *Quota::TokenBucket(10, 1);
  std::vector<Charge> charges_;
  Decision their_decisions_[3];
  Decision our_decisions_[3];
  Application theirs_[3];
  Application ours_[3];
  Application* pointers_[3];
};

TEST_F(AnswerTest, IsReadAsItWasWritten) {
  const Status read = ReadAnswer(WriteAnswer(theirs_), pointers_);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(our_decisions_[0], their_decisions_[0]);
  EXPECT_FALSE(ours_[0].applied);
  EXPECT_TRUE(ours_[0].estimated);
  EXPECT_TRUE(ours_[1].applied);
  EXPECT_EQ(ours_[1].granted, 40);
  EXPECT_EQ(ours_[1].at, theirs_[1].at);
  ASSERT_FALSE(ours_[2].status.ok());
  EXPECT_EQ(ours_[2].status.error(), theirs_[2].status.error());
}

TEST_F(AnswerTest, NamesTheChargeThatMayBeGivenBack) {
  theirs_[0].at = -17;
  ASSERT_TRUE(ReadAnswer(WriteAnswer(theirs_), pointers_).ok());
  EXPECT_EQ(ours_[0].at, 0);
  theirs_[0].returnable = ours_[0].returnable = true;
  ASSERT_TRUE(ReadAnswer(WriteAnswer(theirs_), pointers_).ok());
  EXPECT_EQ(ours_[0].at, -17);
}

TEST_F(AnswerTest, ThatIsCutOrLongerIsRefused) {
  const std::string bytes = WriteAnswer(theirs_);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadAnswer(bytes.substr(0, size), pointers_).ok()) << size;
  }
  EXPECT_FALSE(ReadAnswer(bytes + '\0', pointers_).ok());
  EXPECT_FALSE(ReadAnswer(bytes, std::span(pointers_).first(2)).ok()) << "of three, for two";
}

TEST_F(AnswerTest, ALongMessageIsCut) {
  theirs_[2].status = Error{Code::kInternal, std::string(10'000, 'x')};
  ASSERT_TRUE(ReadAnswer(WriteAnswer(theirs_), pointers_).ok());
  EXPECT_EQ(ours_[2].status.error().message, std::string(512, 'x'));
}

TEST_F(AnswerTest, FlagsThatMeanNothingAreRefused) {
  for (const char flags : {'\2', '\10', '\11'}) {
    std::string bytes = WriteAnswer(theirs_);
    bytes[1] = flags;
    EXPECT_FALSE(ReadAnswer(bytes, pointers_).ok()) << static_cast<int>(flags);
  }
}

}  // namespace
}  // namespace weir::store::wire
