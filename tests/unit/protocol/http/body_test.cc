#include "protocol/http/body.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

constexpr Framing kChunked{Framing::Kind::kChunked, 0};

/// Feeds the bytes in pieces of `piece`; returns the count of bytes consumed, or -1 if it failed,
/// or -2 if it is not done.
int Feed(const Framing& framing, std::string_view bytes, std::size_t piece) {
  BodyScanner scanner;
  scanner.Start(framing);
  int taken = 0;
  while (!bytes.empty() && !scanner.done() && !scanner.failed()) {
    const std::size_t count = scanner.Take(bytes.substr(0, piece));
    bytes.remove_prefix(count);
    taken += static_cast<int>(count);
  }
  if (scanner.failed()) return -1;
  return scanner.done() ? taken : -2;
}

/// The result, which must be the same however the bytes are split.
int Scan(const Framing& framing, std::string_view bytes) {
  const int whole = Feed(framing, bytes, bytes.size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}}) {
    EXPECT_EQ(Feed(framing, bytes, piece), whole) << bytes << " in pieces of " << piece;
  }
  return whole;
}

TEST(BodyScanner, EndsAfterTheLength) {
  EXPECT_EQ(Scan({Framing::Kind::kLength, 5}, "helloGET / HTTP/1.1"), 5);
  EXPECT_EQ(Scan({Framing::Kind::kLength, 6}, "hello"), -2);
  BodyScanner none;
  none.Start({});
  EXPECT_TRUE(none.done());
  EXPECT_EQ(none.Take("x"), 0U);
}

TEST(BodyScanner, OnlyAnExtensionMayFollowASize) {
  EXPECT_EQ(Scan(kChunked, "5 \r\nhello\r\n0\r\n\r\n"), 16);
  EXPECT_EQ(Scan(kChunked, "5 \t;a=b c\r\nhello\r\n0\r\n\r\n"), 23);
  // A reader that continues after the space sees a chunk of 0x55 bytes.
  EXPECT_EQ(Scan(kChunked, "5 5\r\nhello\r\n0\r\n\r\n"), -1);
  EXPECT_EQ(Scan(kChunked, "5 x\r\nhello\r\n0\r\n\r\n"), -1);
  EXPECT_EQ(Feed(kChunked, "5" + std::string(2'000, ' '), 4096), -1);
}

TEST(BodyScanner, TakesAllUntilClose) {
  BodyScanner scanner;
  scanner.Start({Framing::Kind::kUntilClose, 0});
  EXPECT_EQ(scanner.Take("anything"), 8U);
  EXPECT_FALSE(scanner.done());
  EXPECT_TRUE(scanner.until_close());
}

TEST(BodyScanner, EndsAfterTheLastChunk) {
  EXPECT_EQ(Scan(kChunked, "5\r\nhello\r\n0\r\n\r\nGET"), 15);
  EXPECT_EQ(Scan(kChunked, "0\r\n\r\n"), 5);
  EXPECT_EQ(Scan(kChunked, "A\r\n0123456789\r\n1f\r\n0123456789012345678901234567890\r\n0\r\n\r\n"),
            57);
  EXPECT_EQ(Scan(kChunked, "5\r\nhello\r\n0\r\n\r"), -2);
  EXPECT_EQ(Scan(kChunked, "5\r\nhel"), -2);
}

TEST(BodyScanner, ToleratesExtensionsAndTrailers) {
  // 9 + 7 for the chunk, 6 for the last one, 12 + 10 for the trailers, 2 for the empty line.
  EXPECT_EQ(Scan(kChunked, "5;a=\"b\"\r\nhello\r\n0 ;x\r\nTrailer: 1\r\nOther: 2\r\n\r\nrest"), 46);
}

TEST(BodyScanner, RefusesMalformedChunks) {
  for (const std::string_view bytes :
       {"\r\n", "x\r\n", "-5\r\nhello", "5\nhello\r\n0\r\n\r\n", "5\rhello", "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n", "5\r\nhello\rx", "0x5\r\nhello", "5;a\nb\r\n", "5g\r\n", "0\r\n\n",
        "0\r\n folded: 1\r\n\r\n", "0\r\nA: b\n\r\n", "0\r\n\rx", "10000000000000000\r\n",
        "00000000000000000005\r\nhello"}) {
    EXPECT_EQ(Scan(kChunked, bytes), -1) << bytes;
  }
}

TEST(BodyScanner, TakesTheLargestChunkSizeAndNoLarger) {
  // 2^63 - 1 has sixteen digits; its predecessor in digits is below the bound of 2^59.
  EXPECT_EQ(Scan(kChunked, "7fffffffffffffff\r\n"), -2);
  EXPECT_EQ(Scan(kChunked, "8fffffffffffffff\r\n"), -1);
}

TEST(BodyScanner, LeavesTrailersOutIfTold) {
  const std::string_view bytes = "3\r\nabc\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\nrest";
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 100U}) {
    BodyScanner scanner;
    scanner.Start(kChunked, BodyScanner::Trailers::kSkip);
    std::string passed;
    std::string_view left = bytes;
    while (!scanner.done()) {
      left.remove_prefix(scanner.SkipTrailers(left.substr(0, piece)));
      const std::size_t count = scanner.Take(left.substr(0, piece));
      passed += left.substr(0, count);
      left.remove_prefix(count);
      ASSERT_FALSE(scanner.failed());
    }
    EXPECT_EQ(passed, "3\r\nabc\r\n0\r\n\r\n") << piece;
    EXPECT_EQ(left, "rest");
  }
  BodyScanner scanner;
  scanner.Start(kChunked, BodyScanner::Trailers::kSkip);
  scanner.Take("0\r\n");
  scanner.SkipTrailers(std::string(100'000, 'x'));
  EXPECT_TRUE(scanner.failed());  // they are bounded even so
}

TEST(BodyScanner, BoundsExtensionsAndTrailers) {
  // 2 + 1,000 + 2 for the size line, 7 for the data, 5 for the end.
  EXPECT_EQ(Feed(kChunked, "5;" + std::string(1'000, 'x') + "\r\nhello\r\n0\r\n\r\n", 4096), 1'016);
  EXPECT_EQ(Feed(kChunked, "5;" + std::string(2'000, 'x'), 4096), -1);
  EXPECT_EQ(Feed(kChunked, "0\r\nA: " + std::string(20'000, 'x'), 4096), -1);
  std::string lines = "0\r\n";
  for (int i = 0; i < 20'000; ++i) lines += "A\r\n";
  EXPECT_EQ(Feed(kChunked, lines, 4096), -1);
}

TEST(BodyScanner, RefusesTrailersThatAreNoFields) {
  for (const std::string_view bytes :
       {"0\r\n: 1\r\n\r\n", "0\r\n\tA: 1\r\n\r\n", "0\r\n\x01\r\n", "0\r\nA: \x7f\r\n\r\n",
        "0\r\nA: 1\rx", "5;\x01\r\nhello\r\n"}) {
    EXPECT_EQ(Scan(kChunked, bytes), -1) << bytes;
  }
  EXPECT_EQ(Scan(kChunked, "1\t;a\tb\r\nx\r\n0\r\n\r\n"), 16);
}

TEST(BodyScanner, SaysHowMuchIsCertainToFollow) {
  BodyScanner scanner;
  scanner.Start({Framing::Kind::kLength, 10});
  EXPECT_TRUE(scanner.in_data());
  scanner.Take("abc");
  EXPECT_EQ(scanner.expected(), 7U);
  scanner.Start(kChunked);
  EXPECT_FALSE(scanner.in_data());
  scanner.Take("1f\r\n");
  EXPECT_TRUE(scanner.in_data());
  EXPECT_EQ(scanner.expected(), 31U);
}

}  // namespace
}  // namespace weir::http
