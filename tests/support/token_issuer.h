#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>
#include <utility>

#include "base/base64url.h"

namespace weir::test {

/// A key pair that signs tokens, as an issuer does: RS256, PS256, ES256 or EdDSA.
///
/// Thread-safe: immutable.
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

}  // namespace weir::test
