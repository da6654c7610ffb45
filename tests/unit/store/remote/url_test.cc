#include "store/remote/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::store::remote {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RemoteUrl, ThePortOfAnotherWeirIs6380UnlessGiven) {
  const auto usual = ParseUrl("weir://limits.internal");
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(usual->endpoints.front(), (redis::Endpoint{"limits.internal", 6380}));
  EXPECT_FALSE(usual->tls.on);
  const auto given = ParseUrl("weir://:key@127.0.0.1:7000");
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->endpoints.front().port, 7000);
  EXPECT_EQ(given->password, "key");
}

TEST(RemoteUrl, TlsTakesTheOptionsOfRedis) {
  const auto url = ParseUrl("weirs://:key@eu.example:6380?tls_ca=ca.pem");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->tls.on);
  EXPECT_EQ(url->tls.ca_file, "ca.pem");
}

TEST(RemoteUrl, WhatMakesNoSenseIsRefusedWithoutTheKey) {
  for (const char* text : {"redis://:secret@host", "weir://", "weir://:secret@a,b",
                           "weir://:secret@host/1", "weir://:secret@host?tls_ca=x",
                           "weirs://:secret@host?tag=user", "weir://:secret@host?gather=1ms"}) {
    const auto url = ParseUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_THAT(url.error().message, HasSubstr("weir://:key@host:port")) << text;
    EXPECT_THAT(url.error().message, Not(HasSubstr("secret"))) << text;
  }
}

}  // namespace
}  // namespace weir::store::remote
