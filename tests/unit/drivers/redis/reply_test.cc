#include "drivers/redis/reply.h"

#include <gtest/gtest.h>

#include <string>

#include "drivers/redis/command.h"

namespace weir::redis {
namespace {

// One of each kind, and an array within an array.
const std::string kBytes =
    "+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n*1\r\n:1\r\n$0\r\n\r\n";

void ExpectAll(ReplyReader& reader, std::string_view bytes, std::size_t piece) {
  std::vector<Reply> replies;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    ASSERT_TRUE(reader.Feed(bytes.substr(at, piece)).ok());
    for (Reply reply; *reader.Next(reply);) replies.push_back(std::move(reply));
  }
  ASSERT_EQ(replies.size(), 6U);
  EXPECT_EQ(replies[0].kind, Reply::Kind::kStatus);
  EXPECT_EQ(replies[0].text, "OK");
  EXPECT_EQ(replies[1].kind, Reply::Kind::kError);
  EXPECT_EQ(replies[1].text, "ERR no");
  EXPECT_EQ(replies[2].kind, Reply::Kind::kInteger);
  EXPECT_EQ(replies[2].integer, -7);
  EXPECT_EQ(replies[3].text, "a\r\n");
  EXPECT_EQ(replies[4].kind, Reply::Kind::kNil);
  ASSERT_TRUE(replies[5].is_array(2));
  ASSERT_TRUE(replies[5].elements[0].is_array(1));
  EXPECT_EQ(replies[5].elements[0].elements[0].integer, 1);
  EXPECT_EQ(replies[5].elements[1].kind, Reply::Kind::kText);
  EXPECT_EQ(replies[5].elements[1].text, "");
}

TEST(RedisReply, IsTheSameHoweverItsBytesAreCut) {
  // The bulk of 3 bytes is "a\r\n".
  std::string bytes = kBytes;
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    ReplyReader reader;
    ExpectAll(reader, bytes, piece);
  }
}

TEST(RedisReply, RefusesMoreThanItsLimits) {
  ReplyReader elements({.max_bytes = 1000, .max_elements = 3});
  Reply reply;
  ASSERT_TRUE(elements.Feed("*3\r\n:1\r\n:2\r\n:3\r\n").ok());
  EXPECT_TRUE(*elements.Next(reply));
  ASSERT_TRUE(elements.Feed("*2\r\n*2\r\n").ok());
  EXPECT_FALSE(elements.Next(reply).ok());

  ReplyReader bytes({.max_bytes = 10, .max_elements = 3});
  EXPECT_FALSE(bytes.Feed("$1000\r\n12345").ok());
}

TEST(RedisReply, RefusesWhatIsNotAReply) {
  for (const char* wrong : {"hello\r\n", "*2147483647\r\n", "$-2\r\n"}) {
    ReplyReader reader;
    Reply reply;
    ASSERT_TRUE(reader.Feed(wrong).ok());
    EXPECT_FALSE(reader.Next(reply).ok()) << wrong;
  }
}

TEST(RedisReply, ErrorsHaveCodes) {
  EXPECT_EQ(CodeOf("LOADING Redis is loading the dataset in memory"), Code::kUnavailable);
  EXPECT_EQ(CodeOf("NOSCRIPT No matching script."), Code::kNotFound);
  EXPECT_EQ(CodeOf("NOAUTH Authentication required."), Code::kUnauthenticated);
  EXPECT_EQ(CodeOf("NOPERM no"), Code::kPermissionDenied);
  EXPECT_EQ(CodeOf("ERR wrong"), Code::kInternal);
}

TEST(RedisCommand, IsAnArrayOfBulkStrings) {
  std::string out;
  Command{"SET", "a b"}.Add(std::int64_t{-12}).Append(Command{""}).AppendTo(out);
  EXPECT_EQ(out, "*4\r\n$3\r\nSET\r\n$3\r\na b\r\n$3\r\n-12\r\n$0\r\n\r\n");
}

}  // namespace
}  // namespace weir::redis
