#include "drivers/digest/sha256.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace weir {

Digest Sha256(std::string_view text) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

bool EqualDigests(const Digest& a, const Digest& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace weir
