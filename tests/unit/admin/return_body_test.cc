#include "admin/return_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "admin/policy_body.h"
#include "base/instant.h"

namespace weir::admin {
namespace {

using ::testing::HasSubstr;

constexpr const char* kEnd = "2030-01-31T12:00:00Z";

std::string Why(const std::string& body) {
  const auto read = ReadEnd(body);
  return read.ok() ? "no error" : read.error().message;
}

TEST(ReturnBody, AnUndoMayHaveAnEndUnderEitherName) {
  for (const char* name : {"expiresAt", "expires_at"}) {
    const auto end = ReadEnd(std::string(R"({")") + name + R"(":")" + kEnd + "\"}");
    ASSERT_TRUE(end.ok()) << name;
    EXPECT_EQ(*end, ParseInstant(kEnd)) << name;
    const auto never = ReadEnd(std::string(R"({")") + name + "\":null}");
    ASSERT_TRUE(never.ok());
    EXPECT_EQ(*never, PolicyChanges::End(0)) << "never";
  }
  for (const char* body : {"", "{}"}) {
    const auto none = ReadEnd(body);
    ASSERT_TRUE(none.ok()) << body;
    EXPECT_EQ(*none, std::nullopt) << "as it was to end";
  }
}

TEST(ReturnBody, AnythingElseIsRefused) {
  EXPECT_THAT(Why(R"({"expires":"2030-01-31T12:00:00Z"})"), HasSubstr("expires: is not a field"));
  EXPECT_THAT(Why(R"({"version":3})"), HasSubstr("version: is not a field"));
  EXPECT_THAT(Why(R"({"expiresAt":null,"expires_at":null})"), HasSubstr("given twice"));
  EXPECT_THAT(Why(R"({"expiresAt":5})"), HasSubstr("must be a time like"));
  EXPECT_THAT(Why(R"({"expiresAt":")"), HasSubstr("well-formed"));
  EXPECT_THAT(Why(R"({} {})"), HasSubstr("well-formed"));
  EXPECT_THAT(Why("[]"), HasSubstr("must be a JSON object"));
}

TEST(ReturnBody, ARollbackNamesItsVersion) {
  const auto read = ReadRollback(R"({"version":3,"expires_at":"2030-01-31T12:00:00Z"})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->version, 3);
  EXPECT_EQ(read->end, ParseInstant(kEnd));
  for (const char* body : {"", "{}", R"({"version":0})", R"({"version":"3"})",
                           R"({"version":3,"version":4})", R"({"version":3,"expiry":null})"}) {
    const auto refused = ReadRollback(body);
    ASSERT_FALSE(refused.ok()) << body;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << body;
  }
}

// 0 stands for a policy without an end.
TEST(ReturnBody, TheFirstInstantIsInThePast) {
  const std::string end = R"("expiresAt":"1970-01-01T00:00:00Z")";
  EXPECT_THAT(Why("{" + end + "}"), HasSubstr("is in the past"));
  std::string body = R"({"key":"k","type":"TOKEN_BUCKET",)" + end + "}";
  body.reserve(body.size() + 64);
  const auto policy = http::ReadPolicy(body);
  ASSERT_FALSE(policy.ok());
  EXPECT_THAT(policy.error().message, HasSubstr("is in the past"));
}

}  // namespace
}  // namespace weir::admin
