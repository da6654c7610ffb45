#include "access/tokens.h"

#include <gtest/gtest.h>

#include <string>

#include "support/token_issuer.h"

namespace weir::access {
namespace {

using test::Issuer;

constexpr Nanos kNow = 1'800'000'000'000'000'000;

config::Config::Oidc Options() {
  config::Config::Oidc options;
  options.issuer = "https://issuer.example";
  options.audience = "weir";
  options.claim = "realm_access.roles";
  options.roles = {{"weir-admin", *ParseRoles("admin")}, {"weir-ro", *ParseRoles("read+check")}};
  return options;
}

std::string Claims(const std::string& more = R"("exp":1800000300)",
                   const std::string& roles = R"(["other","weir-ro"])") {
  return R"({"iss":"https://issuer.example","aud":["x","weir"],"sub":"alice",)" + more +
         R"(,"realm_access":{"roles":)" + roles + "}}";
}

TEST(Tokens, EveryAlgorithmIsVerifiedAndGivesItsRoles) {
  for (const char* algorithm : {"RS256", "PS256", "ES256", "EdDSA"}) {
    const Issuer issuer(algorithm);
    Tokens tokens(Options());
    ASSERT_TRUE(tokens.Load(issuer.Set()).ok()) << algorithm;
    const std::string token = issuer.Sign(Claims());
    const auto bearer = tokens.Verify(token, kNow);
    ASSERT_TRUE(bearer.has_value()) << algorithm;
    EXPECT_EQ(bearer->name, "alice");
    EXPECT_EQ(bearer->roles, *ParseRoles("read+check"));
    // Any change invalidates it.
    for (std::size_t i = 0; i < token.size(); i += 7) {
      std::string changed = token;
      changed[i] = changed[i] == 'A' ? 'B' : 'A';
      EXPECT_FALSE(tokens.Verify(changed, kNow).has_value()) << algorithm << " " << i;
    }
    EXPECT_FALSE(tokens.Verify(Issuer(algorithm).Sign(Claims()), kNow).has_value());
  }
}

TEST(Tokens, WhatIsNotForUsNowIsRefused) {
  const Issuer issuer("ES256");
  Tokens tokens(Options());
  ASSERT_TRUE(tokens.Load(issuer.Set()).ok());
  const auto good = [&](const std::string& claims) {
    return tokens.Verify(issuer.Sign(claims), kNow).has_value();
  };
  EXPECT_TRUE(good(Claims()));
  EXPECT_TRUE(good(Claims(R"("exp":1799999950)")));   // within the leeway
  EXPECT_FALSE(good(Claims(R"("exp":1799999900)")));  // expired
  EXPECT_FALSE(good(Claims(R"("nbf":1)")));           // without an expiry
  EXPECT_FALSE(good(Claims(R"("exp":1800000300,"nbf":1800000100)")));
  EXPECT_FALSE(good(Claims(R"("exp":1800000300,"nbf":"1800000100")")));  // not a number
  EXPECT_FALSE(good(Claims(R"("exp":1800000300)", R"(["other"])")));
  EXPECT_FALSE(good(Claims(R"("exp":1800000300)", "7")));
  EXPECT_TRUE(good(Claims(R"("exp":1800000300)", R"("a weir-admin b")")));
  EXPECT_FALSE(good(R"({"iss":"https://other","aud":"weir","exp":1800000300})"));
  EXPECT_FALSE(good(R"({"iss":"https://issuer.example","aud":"other","exp":1800000300})"));
  EXPECT_FALSE(good("[]"));
  EXPECT_FALSE(good("nonsense"));
}

TEST(Tokens, OtherAlgorithmsAreNone) {
  const Issuer issuer("ES256");
  Tokens tokens(Options());
  ASSERT_TRUE(tokens.Load(issuer.Set()).ok());
  for (const char* head :
       {R"({"alg":"none"})", R"({"alg":"HS256","kid":"k1"})", R"({"alg":"RS256","kid":"k1"})",
        R"({"alg":"ES384","kid":"k1"})", R"({"kid":"k1"})", R"({"alg":"ES256","kid":"k2"})",
        R"({"alg":"ES256","kid":"k1","crit":["x"]})", "7", ""}) {
    EXPECT_FALSE(tokens.Verify(issuer.SignHead(head, Claims()), kNow).has_value()) << head;
  }
  for (const char* token : {"", ".", "..", "a.b.c", "eyJ", "eyJ.eyJ.", "a.b.c.d"}) {
    EXPECT_FALSE(tokens.Verify(token, kNow).has_value()) << token;
  }
  EXPECT_FALSE(tokens.Verify(std::string(100'000, '.'), kNow).has_value());
}

TEST(Tokens, ATokenThatWasValidIsNotValidLongerThanItSays) {
  const Issuer issuer("ES256");
  Tokens tokens(Options());
  ASSERT_TRUE(tokens.Load(issuer.Set()).ok());
  const std::string token = issuer.Sign(Claims(R"("exp":1800000030)"));
  constexpr Nanos kSecond = 1'000'000'000;
  for (int i = 0; i < 3; ++i) {
    const auto bearer = tokens.Verify(token, kNow + i * kSecond);
    ASSERT_TRUE(bearer.has_value());
    EXPECT_EQ(bearer->name, "alice");
  }
  EXPECT_TRUE(tokens.Verify(token, kNow + 89 * kSecond).has_value());  // within the leeway
  EXPECT_FALSE(tokens.Verify(token, kNow + 91 * kSecond).has_value());
  // With new keys of the issuer, tokens signed by the old ones are invalid.
  EXPECT_TRUE(tokens.Verify(token, kNow).has_value());
  ASSERT_TRUE(tokens.Load(Issuer("ES256").Set()).ok());
  EXPECT_FALSE(tokens.Verify(token, kNow).has_value());
}

TEST(Tokens, AKeyThatIsNotThereIsAskedFor) {
  const Issuer old("ES256", "k1");
  const Issuer next("ES256", "k2");
  Tokens tokens(Options());
  ASSERT_TRUE(tokens.Load(old.Set()).ok());
  int asked = 0;
  tokens.OnUnknownKey([&asked] { ++asked; });
  EXPECT_TRUE(tokens.Verify(old.Sign(Claims()), kNow).has_value());
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(tokens.Verify(next.Sign(Claims()), kNow).has_value());
  EXPECT_EQ(asked, 1);
  ASSERT_TRUE(tokens.Load(next.Set()).ok());
  EXPECT_TRUE(tokens.Verify(next.Sign(Claims()), kNow).has_value());
  EXPECT_EQ(asked, 1);
}

TEST(Tokens, ASetThatCannotBeUsedChangesNothing) {
  const Issuer issuer("EdDSA");
  Tokens tokens(Options());
  EXPECT_FALSE(tokens.Verify(issuer.Sign(Claims()), kNow).has_value());
  ASSERT_TRUE(tokens.Load(issuer.Set()).ok());
  for (const char* set : {"", "[]", "{}", R"({"keys":[]})", R"({"keys":[{"kty":"oct","k":"AA"}]})",
                          R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]})",
                          R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})", "{"}) {
    EXPECT_FALSE(tokens.Load(set).ok()) << set;
  }
  EXPECT_TRUE(tokens.Verify(issuer.Sign(Claims()), kNow).has_value());
}

}  // namespace
}  // namespace weir::access
