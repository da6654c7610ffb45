#include "filter/route.h"

#include <gtest/gtest.h>

namespace weir::filter {
namespace {

std::string Route(std::string_view target) {
  std::string scratch;
  return std::string(NormalRoute(target, scratch));
}

TEST(NormalRoute, LeavesAPlainPathAlone) {
  EXPECT_EQ(Route("/v1/pay"), "/v1/pay");
  EXPECT_EQ(Route("/"), "/");
  EXPECT_EQ(Route("/a.b/c-d_e~f"), "/a.b/c-d_e~f");
  const std::string_view target = "/v1/pay?x=1";
  std::string scratch;
  EXPECT_EQ(NormalRoute(target, scratch).data(), target.data());  // no copy
}

TEST(NormalRoute, DropsQueryAndFragment) {
  EXPECT_EQ(Route("/v1/pay?x=/../y"), "/v1/pay");
  EXPECT_EQ(Route("/v1/pay#top"), "/v1/pay");
}

TEST(NormalRoute, MergesSlashesAndDropsTheTrailingOne) {
  EXPECT_EQ(Route("//v1///pay//"), "/v1/pay");
  EXPECT_EQ(Route("/v1/pay/"), "/v1/pay");
  EXPECT_EQ(Route("//"), "/");
}

TEST(NormalRoute, ResolvesDotSegments) {
  EXPECT_EQ(Route("/v1/./pay"), "/v1/pay");
  EXPECT_EQ(Route("/v1/x/../pay"), "/v1/pay");
  EXPECT_EQ(Route("/../../v1/pay"), "/v1/pay");
  EXPECT_EQ(Route("/v1/.."), "/");
  EXPECT_EQ(Route("/v1/.hidden"), "/v1/.hidden");
  EXPECT_EQ(Route("/v1/...a/b"), "/v1/...a/b");
}

TEST(NormalRoute, DecodesUnreservedCharactersOnly) {
  EXPECT_EQ(Route("/v1/%70ay"), "/v1/pay");
  EXPECT_EQ(Route("/v1/%2e%2E/pay"), "/pay");
  EXPECT_EQ(Route("/v1/a%2fb"), "/v1/a%2Fb");  // an encoded slash is data, not a separator
  EXPECT_EQ(Route("/v1/100%"), "/v1/100%");
  EXPECT_EQ(Route("/v1/%zz"), "/v1/%zz");
}

TEST(NormalRoute, LeavesOtherFormsOfTargetAlone) {
  EXPECT_EQ(Route("*"), "*");
  EXPECT_EQ(Route(""), "");
}

}  // namespace
}  // namespace weir::filter
