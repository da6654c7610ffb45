#include "protocol/grpc/status.h"

#include <gtest/gtest.h>

namespace weir::grpc {
namespace {

using std::chrono::nanoseconds;

TEST(Status, EveryCodeHasItsNumberOnTheWire) {
  EXPECT_EQ(StatusText(StatusCode::kOk), "0");
  EXPECT_EQ(StatusText(StatusCode::kUnimplemented), "12");
  EXPECT_EQ(StatusText(StatusCode::kUnauthenticated), "16");
}

TEST(Status, CodesOfResultsKeepTheirMeaning) {
  EXPECT_EQ(ToStatusCode(Code::kInvalidArgument), StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStatusCode(Code::kUnavailable), StatusCode::kUnavailable);
  EXPECT_EQ(ToStatusCode(Code::kDeadlineExceeded), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ToStatusCode(Code::kInternal), StatusCode::kInternal);
  EXPECT_EQ(ToStatusCode(Code::kNotFound), StatusCode::kNotFound);
  EXPECT_EQ(ToStatusCode(Code::kAlreadyExists), StatusCode::kAlreadyExists);
  EXPECT_EQ(ToStatusCode(Code::kFailedPrecondition), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToStatusCode(Code::kUnauthenticated), StatusCode::kUnauthenticated);
  EXPECT_EQ(ToStatusCode(Code::kPermissionDenied), StatusCode::kPermissionDenied);
  EXPECT_EQ(ToStatusCode(Code::kResourceExhausted), StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatusCode(Code::kUnimplemented), StatusCode::kUnimplemented);
}

TEST(Status, MessagesArePercentEncodedOutsidePrintableAscii) {
  EXPECT_EQ(PercentEncode("plain text, with spaces!"), "plain text, with spaces!");
  EXPECT_EQ(PercentEncode("100%"), "100%25");
  EXPECT_EQ(PercentEncode("a\nb\x7f"), "a%0Ab%7F");
  EXPECT_EQ(PercentEncode("\xC3\xBC"), "%C3%BC");  // ü in UTF-8
}

TEST(Status, LongMessagesAreCutBetweenCharacters) {
  EXPECT_EQ(StatusMessage(std::string(1'024, 'a')), std::string(1'024, 'a'));
  EXPECT_EQ(StatusMessage(std::string(1'025, 'a')), std::string(1'024, 'a') + "...");
  // ü would be cut in two.
  EXPECT_EQ(StatusMessage(std::string(1'023, 'a') + "\xC3\xBC and more"),
            std::string(1'023, 'a') + "...");
  // Not UTF-8 at all.
  EXPECT_EQ(StatusMessage(std::string(100'000, '\x80')).size(), 3 * 1'021U + 3);
}

TEST(Status, TimeoutsHaveDigitsAndAUnit) {
  EXPECT_EQ(ParseTimeout("1H"), nanoseconds(3'600'000'000'000));
  EXPECT_EQ(ParseTimeout("2M"), nanoseconds(120'000'000'000));
  EXPECT_EQ(ParseTimeout("3S"), nanoseconds(3'000'000'000));
  EXPECT_EQ(ParseTimeout("4m"), nanoseconds(4'000'000));
  EXPECT_EQ(ParseTimeout("5u"), nanoseconds(5'000));
  EXPECT_EQ(ParseTimeout("99999999n"), nanoseconds(99'999'999));
  EXPECT_EQ(ParseTimeout("0S"), nanoseconds(0));
}

TEST(Status, TheLongestTimeoutDoesNotOverflow) {
  // 100 Julian years: 36525 days of 24 hours.
  EXPECT_EQ(ParseTimeout("99999999H"), nanoseconds(std::int64_t{36525} * 24 * 3'600'000'000'000));
  EXPECT_GT(*ParseTimeout("99999999M"), nanoseconds(0));
}

TEST(Status, MalformedTimeoutsAreRecognised) {
  for (const char* text : {"", "S", "1", "1s", "-1S", " 1S", "1.5S", "123456789S", "1SS"}) {
    EXPECT_EQ(ParseTimeout(text), std::nullopt) << text;
  }
}

TEST(Status, ContentTypesOfGrpcWithProtobuf) {
  EXPECT_TRUE(IsGrpcContentType("application/grpc"));
  EXPECT_TRUE(IsGrpcContentType("application/grpc+proto"));
  EXPECT_TRUE(IsGrpcContentType("application/grpc;charset=utf-8"));
  EXPECT_TRUE(IsGrpcContentType("application/grpc ; charset=utf-8"));
  EXPECT_FALSE(IsGrpcContentType("application/grpc+json"));
  EXPECT_FALSE(IsGrpcContentType("application/grpc-web"));
  EXPECT_FALSE(IsGrpcContentType("application/json"));
  EXPECT_FALSE(IsGrpcContentType(""));
}

}  // namespace
}  // namespace weir::grpc
