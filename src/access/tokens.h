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
/// Thread-safe. Never waits for anything.
class Tokens {
 public:
  explicit Tokens(config::Config::Oidc options);
  ~Tokens();

  /// Takes the issuer's keys (a JWK set) in place of those before. An error changes nothing.
  Status Load(std::string_view jwks);

  /// Called, on the verifying thread, when a token names a key that is not among those loaded: the
  /// issuer may have new ones. Must not wait. Before the first Verify.
  void OnUnknownKey(std::function<void()> told) { unknown_key_ = std::move(told); }

  /// Nothing if the token is not valid now or gives no role. A token that was valid a moment ago is
  /// known by its digest: clients send the same one with every request, and a signature costs more
  /// than a check.
  std::optional<Bearer> Verify(std::string_view token, Nanos now) const;

 private:
  struct Key;
  using Keys = std::vector<Key>;
  /// A token that is valid until then.
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
  mutable std::unordered_map<config::Digest, Valid, DigestHash> valid_;  // by keys_
};

}  // namespace weir::access
