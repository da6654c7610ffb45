#include "base/base64url.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Base64Url, KnownTexts) {
  EXPECT_EQ(Base64UrlEncoded(""), "");
  EXPECT_EQ(Base64UrlEncoded("f"), "Zg");
  EXPECT_EQ(Base64UrlEncoded("fo"), "Zm8");
  EXPECT_EQ(Base64UrlEncoded("foo"), "Zm9v");
  EXPECT_EQ(Base64UrlEncoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64UrlEncoded("\xff\xfe\xfd\xfb"), "__79-w");
}

TEST(Base64Url, EveryLengthAndByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(Base64UrlDecoded(Base64UrlEncoded(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64Url, OtherTextsAreRefused) {
  for (const char* text : {"A", "Zg==", "Zm+v", "Zm/v", "Zm9v\n", "Zh", "Zm9", "AAAAA"}) {
    EXPECT_EQ(Base64UrlDecoded(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weir
