#include "protocol/http/uri.h"

#include <gtest/gtest.h>

#include "protocol/http/error.h"

namespace weir::http {
namespace {

TEST(Uri, DecodesWhatIsWellFormed) {
  EXPECT_EQ(DecodeSegment("user-123"), "user-123");
  EXPECT_EQ(DecodeSegment("a%2Fb%2fc"), "a/b/c");
  EXPECT_EQ(DecodeSegment("a+b"), "a+b");
  EXPECT_EQ(DecodeQuery("a+b"), "a b");
  EXPECT_EQ(DecodeSegment("%C3%BC"), "\xc3\xbc");
  EXPECT_EQ(DecodeSegment(""), "");
}

TEST(Uri, RefusesWhatCouldNotBeShownOrStored) {
  for (const char* text : {"%", "%4", "%zz", "a%0", "%00", "%0a", "%7f", "%ff", "%c0%80",
                           "%ed%a0%80", "%f4%90%80%80", "%e2%82"}) {
    EXPECT_EQ(DecodeSegment(text), std::nullopt) << text;
  }
}

TEST(Error, HasTheSchemaOfTheAdminApi) {
  const Response response = ErrorResponse(Error{Code::kNotFound, "no policy \"x\""});
  EXPECT_EQ(response.status, 404);
  const std::string head =
      R"({"status":404,"error":"Not Found","message":"no policy \"x\"","timestamp":")";
  EXPECT_EQ(response.body.substr(0, head.size()), head);
  EXPECT_EQ(response.body.size(), head.size() + std::string_view("2026-02-22T06:55:00Z\"}").size());
}

}  // namespace
}  // namespace weir::http
