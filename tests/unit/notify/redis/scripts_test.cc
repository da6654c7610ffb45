#include "notify/redis/scripts.h"

#include <gmock/gmock.h>

namespace weir::notify::redis {
namespace {

using weir::redis::Reply;

Reply Texts(std::initializer_list<const char*> words) {
  Reply reply;
  reply.kind = Reply::Kind::kArray;
  for (const char* word : words) {
    Reply element;
    element.kind = Reply::Kind::kText;
    element.text = word;
    reply.elements.push_back(element);
  }
  return reply;
}

TEST(Scripts, KeysAreNamedAfterTheUser) {
  EXPECT_EQ(CacheKey("42"), "RateLimiterCache:42");
  EXPECT_NE(SendKey("a:b", "c"), SendKey("a", "b:c"));
}

TEST(Scripts, ASendComesBackAsItWasRemembered) {
  const SendAnswer answer{
      .event_id = "e 1", .rate_limit = 5, .remaining = 4, .resets_at = 1'767'323'045'000'000};
  const Result<Remembered> read = Decode(Encode({-7, true, 9, answer}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->digest, -7);
  EXPECT_TRUE(read->confirmed);
  EXPECT_EQ(read->window_start, 9);
  EXPECT_EQ(read->answer.event_id, "e 1");
  EXPECT_EQ(read->answer.rate_limit, 5);
  EXPECT_EQ(read->answer.remaining, 4);
  EXPECT_EQ(read->answer.resets_at, 1'767'323'045'000'000);
}

TEST(Scripts, WhatIsNoSendIsAnError) {
  for (const char* text :
       {"", "1", "1 2 3 4 5", "1 x 3 4 5 6 e", "1 2 3 4 99999999999999999999 6 e"}) {
    EXPECT_FALSE(Decode(text).ok()) << text;
  }
}

TEST(Scripts, AnswersAreRead) {
  EXPECT_EQ(ReadTaken(Texts({"miss"}))->kind, Taken::Kind::kMiss);
  EXPECT_EQ(ReadTaken(Texts({"seen", "x"}))->seen, "x");
  const Result<Taken> taken = ReadTaken(Texts({"allowed", "5", "4", "10", "20"}));
  EXPECT_EQ(taken->kind, Taken::Kind::kAllowed);
  EXPECT_EQ(taken->rate_limit, 5);
  EXPECT_EQ(taken->remaining, 4);
  EXPECT_EQ(taken->window_start, 10);
  EXPECT_EQ(taken->window_end, 20);
  EXPECT_FALSE(ReadTaken(Texts({"allowed", "5"})).ok());
  EXPECT_FALSE(ReadTaken(Texts({"allowed", "5", "x", "1", "1"})).ok());
  EXPECT_FALSE(ReadTaken(Texts({"what", "5", "4", "10", "20"})).ok());
  EXPECT_FALSE(ReadTaken(Reply{}).ok());
}

}  // namespace
}  // namespace weir::notify::redis
