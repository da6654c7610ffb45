#pragma once

// OIDC bearer tokens: JWTs that an issuer has signed (RFC 7519, 7515, 7517, 7518).

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/gate.h"
#include "config/config.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::access {

/// Checks tokens with an issuer's public keys and says which roles their claims give. Signatures
/// are OpenSSL's: RS256, RS384, RS512, PS256, ES256, ES384 and EdDSA. A token that is signed with
/// anything else, a shared secret or nothing at all is not valid.
///
/// Thread-safe. Never waits for anything.
class Tokens {
 public:
  explicit Tokens(config::Config::Oidc options);
  ~Tokens();

  /// Takes the issuer's keys (a JWK set) in place of those before. An error changes nothing.
  Status Load(std::string_view jwks);

  /// Nothing if the token is not valid now or gives no role.
  std::optional<Bearer> Verify(std::string_view token, Nanos now) const;

 private:
  struct Key;
  using Keys = std::vector<Key>;

  std::shared_ptr<const Keys> keys() const;
  bool SignatureHolds(std::string_view token) const;
  std::optional<Bearer> ReadClaims(const std::string& payload, Nanos now) const;

  const config::Config::Oidc options_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Keys> keys_;
};

}  // namespace weir::access
