#pragma once

// OIDC bearer tokens: JWTs that an issuer has signed (RFC 7519, 7515, 7517, 7518).

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "access/gate.h"
#include "config/config.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::access {

/// Verifies tokens with an issuer's public keys and says which roles their claims grant. OpenSSL
/// checks the signatures: RS256, RS384, RS512, PS256, ES256, ES384 and EdDSA. A token that is
/// signed with anything else, with a shared secret or not at all is not valid.
///
/// Thread-safe. Never waits for I/O.
class Tokens {
 public:
  explicit Tokens(config::Config::Oidc options);
  ~Tokens();

  /// Replaces the issuer's keys (a JWK set). On an error, nothing changes.
  Status Load(std::string_view jwks);

  /// `told` is called on the verifying thread when a token names a key that is not loaded: the
  /// issuer may have new ones. It must not block. Call this before the first Verify.
  void OnUnknownKey(std::function<void()> told) { unknown_key_ = std::move(told); }

  /// nullopt if the token is not valid now or grants no role. Recent valid tokens are recognized
  /// by their digest: clients send the same one with every request, and verifying a signature costs
  /// more than a rate limit check.
  std::optional<Bearer> Verify(std::string_view token, Nanos now) const;

 private:
  struct Key;
  using Keys = std::vector<Key>;
  /// A token that is valid until `until`.
  struct Valid {
    Bearer bearer;
    Nanos until = 0;
  };
  struct DigestHash {
    std::size_t operator()(const config::Digest& digest) const noexcept;
  };

  std::shared_ptr<const Keys> keys() const;
  bool SignatureHolds(std::string_view token, const Keys& keys) const;
  std::optional<Valid> ReadClaims(const std::string& payload, Nanos now) const;
  std::optional<Bearer> Remembered(const config::Digest& digest, Nanos now) const;
  void Remember(const config::Digest& digest, Valid valid,
                const std::shared_ptr<const Keys>& by) const;

  const config::Config::Oidc options_;
  std::function<void()> unknown_key_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Keys> keys_;
  mutable std::unordered_map<config::Digest, Valid, DigestHash> valid_;  // verified by keys_
};

}  // namespace weir::access
