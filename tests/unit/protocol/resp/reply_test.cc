#include "protocol/resp/reply.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace weir::resp {
namespace {

template <typename Write>
std::string Written(Protocol protocol, Write write) {
  Buffer out;
  ReplyWriter writer(out, protocol);
  write(writer);
  return std::string(out.view());
}

TEST(RespReply, IntegersOfEverySize) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{9}, std::int64_t{10}, std::int64_t{99}, std::int64_t{100},
        std::int64_t{-1}, std::int64_t{1234567}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(Written(Protocol::kResp2, [&](ReplyWriter& w) { w.Integer(value); }),
              ":" + std::to_string(value) + "\r\n");
  }
}

TEST(RespReply, Resp3KindsFallBackToResp2) {
  const auto write = [](ReplyWriter& w) {
    w.Map(1);
    w.Bulk("a");
    w.Null();
    w.Verbatim("hi");
  };
  EXPECT_EQ(Written(Protocol::kResp2, write), "*2\r\n$1\r\na\r\n$-1\r\n$2\r\nhi\r\n");
  EXPECT_EQ(Written(Protocol::kResp3, write), "%1\r\n$1\r\na\r\n_\r\n=6\r\ntxt:hi\r\n");
}

TEST(RespReply, ALineBreakCannotEndAnErrorEarly) {
  EXPECT_EQ(Written(Protocol::kResp2, [](ReplyWriter& w) { w.Error("ERR", "a\r\n+OK"); }),
            "-ERR a  +OK\r\n");
}

TEST(RespBuffer, KeepsWhatIsHeldWhenItGrowsOrMoves) {
  Buffer buffer;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece = std::to_string(i) + ",";
    buffer.Append(piece);
    expected += piece;
    if (i % 3 == 2) {
      buffer.Consume(4);
      expected.erase(0, 4);
    }
    ASSERT_EQ(buffer.view(), expected);
  }
  buffer.Shrink(16);
  ASSERT_EQ(buffer.view(), expected) << "what is held stays";
  buffer.Consume(buffer.size());
  buffer.Shrink(16);
  EXPECT_EQ(buffer.capacity(), 0U);
}

}  // namespace
}  // namespace weir::resp
