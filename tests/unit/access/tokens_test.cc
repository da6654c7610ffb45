#include "access/tokens.h"

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>

#include "base/base64url.h"

namespace weir::access {
namespace {

constexpr Nanos kNow = 1'800'000'000'000'000'000;

config::Config::Oidc Options() {
  config::Config::Oidc options;
  options.issuer = "https://issuer.example";
  options.audience = "weir";
  options.claim = "realm_access.roles";
  options.roles = {{"weir-admin", *ParseRoles("admin")}, {"weir-ro", *ParseRoles("read+check")}};
  return options;
}

/// A key pair that signs tokens, as an issuer does.
class Issuer {
 public:
  explicit Issuer(std::string algorithm, std::string id = "k1")
      : algorithm_(std::move(algorithm)), id_(std::move(id)) {
    EVP_PKEY* key = nullptr;
    if (algorithm_ == "ES256") {
      key = EVP_EC_gen("P-256");
    } else if (algorithm_ == "EdDSA") {
      key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    } else {
      key = EVP_RSA_gen(2048);
    }
    key_ = std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free);
  }

  std::string Jwk() const {
    const std::string rest = R"(,"use":"sig","kid":")" + id_ + "\"}";
    if (algorithm_ == "EdDSA") {
      std::string x(32, '\0');
      std::size_t size = x.size();
      EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(x.data()), &size);
      return R"({"kty":"OKP","crv":"Ed25519","x":")" + Base64UrlEncoded(x) + "\"" + rest;
    }
    if (algorithm_ == "ES256") {
      return R"({"kty":"EC","crv":"P-256","x":")" + Part(OSSL_PKEY_PARAM_EC_PUB_X, 32) +
             R"(","y":")" + Part(OSSL_PKEY_PARAM_EC_PUB_Y, 32) + "\"" + rest;
    }
    return R"({"kty":"RSA","n":")" + Part(OSSL_PKEY_PARAM_RSA_N, 256) + R"(","e":")" +
           Part(OSSL_PKEY_PARAM_RSA_E, 3) + "\"" + rest;
  }
  std::string Set() const { return R"({"keys":[{"kty":"oct","k":"AAAA"},)" + Jwk() + "]}"; }

  std::string Sign(const std::string& claims) const {
    return SignHead(R"({"alg":")" + algorithm_ + R"(","kid":")" + id_ + "\"}", claims);
  }
  std::string SignHead(const std::string& head, const std::string& claims) const {
    const std::string text = Base64UrlEncoded(head) + "." + Base64UrlEncoded(claims);
    const std::shared_ptr<EVP_MD_CTX> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_PKEY_CTX* parameters = nullptr;
    const bool own_digest = algorithm_ == "EdDSA";
    EVP_DigestSignInit_ex(context.get(), &parameters, own_digest ? nullptr : "SHA256", nullptr,
                          nullptr, key_.get(), nullptr);
    if (algorithm_ == "PS256") {
      EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST);
    }
    std::string signature(512, '\0');
    std::size_t size = signature.size();
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                   reinterpret_cast<const unsigned char*>(text.data()), text.size());
    signature.resize(size);
    return text + "." + Base64UrlEncoded(algorithm_ == "ES256" ? Raw(signature) : signature);
  }

 private:
  std::string Part(const char* name, std::size_t size) const {
    BIGNUM* number = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &number);
    std::string bytes(size, '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size));
    BN_free(number);
    return Base64UrlEncoded(bytes);
  }

  static std::string Raw(const std::string& der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    std::string raw(64, '\0');
    auto* out = reinterpret_cast<unsigned char*>(raw.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + 32, 32);
    ECDSA_SIG_free(signature);
    return raw;
  }

  std::string algorithm_;
  std::string id_;
  std::shared_ptr<EVP_PKEY> key_;
};

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
    // A change anywhere breaks it.
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
  EXPECT_FALSE(good(Claims(R"("exp":1799999900)")));  // over
  EXPECT_FALSE(good(Claims(R"("nbf":1)")));           // without an end
  EXPECT_FALSE(good(Claims(R"("exp":1800000300,"nbf":1800000100)")));
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
