#include "access/tokens.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/base64url.h"

namespace weir::access {
namespace {

using simdjson::dom::element;

constexpr std::size_t kMaxToken = 16 << 10;
constexpr std::size_t kMaxKeys = 64;
constexpr std::size_t kMaxRemembered = 4'096;
constexpr Nanos kSecond = 1'000'000'000;
constexpr std::int64_t kLeeway = 60;  // tolerated clock difference in seconds

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* object) const noexcept { Free(object); }
};
using Number = std::unique_ptr<BIGNUM, Freed<BIGNUM, BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM, OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using PublicKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX, EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG, ECDSA_SIG_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// An algorithm of RFC 7518, and the type of its keys.
struct Algorithm {
  std::string_view name;
  std::string_view key_type;  // kty, or kty/crv
  const char* digest;         // null: built into the scheme
  bool pss = false;
  std::size_t half = 0;  // bytes of each half of an ECDSA signature
};
constexpr std::array<Algorithm, 7> kAlgorithms = {{{"RS256", "RSA", "SHA256"},
                                                   {"RS384", "RSA", "SHA384"},
                                                   {"RS512", "RSA", "SHA512"},
                                                   {"PS256", "RSA", "SHA256", true},
                                                   {"ES256", "EC/P-256", "SHA256", false, 32},
                                                   {"ES384", "EC/P-384", "SHA384", false, 48},
                                                   {"EdDSA", "OKP/Ed25519", nullptr}}};

std::string Text(const element& object, std::string_view name) {
  std::string_view text;
  return object[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::string Decoded(const element& object, std::string_view name) {
  return Base64UrlDecoded(Text(object, name)).value_or("");
}

PublicKey FromParams(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) <= 0 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) <= 0) {
    return nullptr;
  }
  return PublicKey(key);
}

PublicKey RsaKey(const element& jwk) {
  const std::string n = Decoded(jwk, "n");
  const std::string e = Decoded(jwk, "e");
  if (n.size() < 256 || n.size() > 1024 || e.empty() || e.size() > 8) return nullptr;
  const Number modulus(BN_bin2bn(Bytes(n), static_cast<int>(n.size()), nullptr));
  const Number exponent(BN_bin2bn(Bytes(e), static_cast<int>(e.size()), nullptr));
  const Builder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  return FromParams("RSA", builder.get());
}

PublicKey EcKey(const element& jwk, const char* group, std::size_t size) {
  const std::string x = Decoded(jwk, "x");
  const std::string y = Decoded(jwk, "y");
  if (x.size() != size || y.size() != size) return nullptr;
  const std::string point = "\x04" + x + y;
  const Builder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return FromParams("EC", builder.get());
}

PublicKey ReadKey(const element& jwk, const std::string& type) {
  if (type == "RSA") return RsaKey(jwk);
  if (type == "EC/P-256") return EcKey(jwk, "P-256", 32);
  if (type == "EC/P-384") return EcKey(jwk, "P-384", 48);
  if (type != "OKP/Ed25519") return nullptr;
  const std::string x = Decoded(jwk, "x");
  return PublicKey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(x), x.size()));
}

/// JWS concatenates the two numbers of an ECDSA signature, whereas OpenSSL expects DER.
std::string ToDer(std::string_view raw, std::size_t half) {
  if (raw.size() != 2 * half) return {};
  const Signature signature(ECDSA_SIG_new());
  BIGNUM* r = BN_bin2bn(Bytes(raw), static_cast<int>(half), nullptr);
  BIGNUM* s = BN_bin2bn(Bytes(raw.substr(half)), static_cast<int>(half), nullptr);
  ECDSA_SIG_set0(signature.get(), r, s);
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return {};
  std::string bytes(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

bool Verifies(const Algorithm& algorithm, EVP_PKEY* key, std::string_view text,
              std::string_view raw) {
  const std::string der = algorithm.half != 0 ? ToDer(raw, algorithm.half) : std::string(raw);
  const DigestContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* parameters = nullptr;
  if (EVP_DigestVerifyInit_ex(context.get(), &parameters, algorithm.digest, nullptr, nullptr, key,
                              nullptr) <= 0) {
    return false;
  }
  if (algorithm.pss &&
      (EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) <= 0 ||
       EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) <= 0)) {
    return false;
  }
  return EVP_DigestVerify(context.get(), Bytes(der), der.size(), Bytes(text), text.size()) == 1;
}

bool IsFor(const element& claims, std::string_view audience) {
  simdjson::dom::array several;
  if (claims["aud"].get(several) != simdjson::SUCCESS) return Text(claims, "aud") == audience;
  return std::any_of(several.begin(), several.end(), [audience](element one) {
    std::string_view text;
    return one.get(text) == simdjson::SUCCESS && text == audience;
  });
}

/// The second at which the token expires; nullopt if it is not valid now.
std::optional<double> ValidUntil(const element& claims, Nanos now) {
  const std::int64_t seconds = now / kSecond;
  double expires = 0;
  double begins = 0;
  // A token without an expiry would be valid forever.
  if (claims["exp"].get(expires) != simdjson::SUCCESS) return std::nullopt;
  element given;
  const bool has_begin = claims["nbf"].get(given) == simdjson::SUCCESS;
  if (has_begin && given.get(begins) != simdjson::SUCCESS) return std::nullopt;
  const bool valid = static_cast<double>(seconds - kLeeway) < expires &&
                     static_cast<double>(seconds + kLeeway) >= begins;
  return valid ? std::optional(expires) : std::nullopt;
}

/// The strings of a claim: a list, or words in one string. "realm_access.roles" is a nested claim.
std::vector<std::string> TextsOf(element claims, std::string_view path) {
  std::vector<std::string> texts;
  for (std::size_t dot = 0; (dot = path.find('.')) != std::string_view::npos;) {
    if (claims[path.substr(0, dot)].get(claims) != simdjson::SUCCESS) return texts;
    path.remove_prefix(dot + 1);
  }
  simdjson::dom::array several;
  if (claims[path].get(several) == simdjson::SUCCESS) {
    for (const element one : several) {
      std::string_view text;
      if (one.get(text) == simdjson::SUCCESS) texts.emplace_back(text);
    }
    return texts;
  }
  const std::string words = Text(claims, path);
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (end > at) texts.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

}  // namespace

struct Tokens::Key {
  std::string id;
  std::string type;
  std::string algorithm;  // empty: any that fits the type
  std::shared_ptr<EVP_PKEY> key;
};

Tokens::Tokens(config::Config::Oidc options)
    : options_(std::move(options)), keys_(std::make_shared<Keys>()) {}
Tokens::~Tokens() = default;

std::shared_ptr<const Tokens::Keys> Tokens::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

Status Tokens::Load(std::string_view jwks) {
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  const simdjson::padded_string text(jwks);
  if (parser.parse(text)["keys"].get(list) != simdjson::SUCCESS) {
    return Error{Code::kInvalidArgument, "not a JWK set: expected {\"keys\":[…]}"};
  }
  auto keys = std::make_shared<Keys>();
  for (const element jwk : list) {
    if (Text(jwk, "use") == "enc" || keys->size() == kMaxKeys) continue;
    const std::string curve = Text(jwk, "crv");
    Key key{Text(jwk, "kid"), Text(jwk, "kty") + (curve.empty() ? "" : "/" + curve),
            Text(jwk, "alg"), nullptr};
    PublicKey read = ReadKey(jwk, key.type);
    // Key sets also contain keys for other uses; those that cannot be used here are skipped.
    if (!read) continue;
    key.key = std::shared_ptr<EVP_PKEY>(read.release(), EVP_PKEY_free);
    keys->push_back(std::move(key));
  }
  if (keys->empty()) {
    return Error{Code::kInvalidArgument,
                 "no usable key; supported: RSA of 2048 bits or more, P-256, P-384 and Ed25519"};
  }
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
  valid_.clear();
  return {};
}

bool Tokens::SignatureHolds(std::string_view token, const Keys& keys) const {
  const std::size_t second = token.rfind('.');
  const auto head = Base64UrlDecoded(token.substr(0, token.find('.')));
  const auto signature = Base64UrlDecoded(token.substr(second + 1));
  if (!head || !signature) return false;
  simdjson::dom::parser parser;
  element header;
  if (parser.parse(simdjson::padded_string(*head)).get(header) != simdjson::SUCCESS) return false;
  element ignored;
  if (header["crit"].get(ignored) == simdjson::SUCCESS) return false;
  const std::string name = Text(header, "alg");
  const std::string id = Text(header, "kid");
  const auto algorithm = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  if (algorithm == kAlgorithms.end()) return false;
  const auto named = [&id](const Key& key) { return key.id == id; };
  if (unknown_key_ && !id.empty() && std::ranges::none_of(keys, named)) unknown_key_();
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) {
    return key.type == algorithm->key_type && (id.empty() || key.id == id) &&
           (key.algorithm.empty() || key.algorithm == name) &&
           Verifies(*algorithm, key.key.get(), token.substr(0, second), *signature);
  });
}

std::optional<Tokens::Valid> Tokens::ReadClaims(const std::string& payload, Nanos now) const {
  simdjson::dom::parser parser;
  element claims;
  if (parser.parse(simdjson::padded_string(payload)).get(claims) != simdjson::SUCCESS ||
      Text(claims, "iss") != options_.issuer || !IsFor(claims, options_.audience)) {
    return std::nullopt;
  }
  const std::optional<double> expires = ValidUntil(claims, now);
  if (!expires) return std::nullopt;
  Bearer bearer{Text(claims, "sub"), kNoRoles};
  for (const std::string& text : TextsOf(claims, options_.claim)) {
    for (const auto& mapping : options_.roles) {
      if (mapping.value == text) bearer.roles |= mapping.roles;
    }
  }
  if (bearer.roles == kNoRoles) return std::nullopt;
  // Verified again after a minute at the latest.
  const double left = *expires + kLeeway - static_cast<double>(now / kSecond);
  const auto seconds = static_cast<std::int64_t>(std::clamp(left, 0.0, 60.0));
  return Valid{std::move(bearer), now + seconds * kSecond};
}

std::size_t Tokens::DigestHash::operator()(const config::Digest& digest) const noexcept {
  std::size_t word = 0;
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

std::optional<Bearer> Tokens::Remembered(const config::Digest& digest, Nanos now) const {
  const std::lock_guard lock(mutex_);
  const auto found = valid_.find(digest);
  if (found == valid_.end() || now >= found->second.until) return std::nullopt;
  return found->second.bearer;
}

void Tokens::Remember(const config::Digest& digest, Valid valid,
                      const std::shared_ptr<const Keys>& by) const {
  const std::lock_guard lock(mutex_);
  if (by != keys_) return;  // replaced meanwhile; the token may not be valid under the new ones
  if (valid_.size() >= kMaxRemembered) valid_.clear();
  valid_.insert_or_assign(digest, std::move(valid));
}

std::optional<Bearer> Tokens::Verify(std::string_view token, Nanos now) const {
  if (token.size() > kMaxToken || std::ranges::count(token, '.') != 2) return std::nullopt;
  const config::Digest digest = config::Sha256(token);
  if (auto known = Remembered(digest, now)) return known;
  const auto by = keys();
  if (!SignatureHolds(token, *by)) return std::nullopt;
  const std::size_t first = token.find('.') + 1;
  const auto payload = Base64UrlDecoded(token.substr(first, token.rfind('.') - first));
  if (!payload) return std::nullopt;
  std::optional<Valid> valid = ReadClaims(*payload, now);
  if (!valid) return std::nullopt;
  Bearer bearer = valid->bearer;
  Remember(digest, std::move(*valid), by);
  return bearer;
}

}  // namespace weir::access
