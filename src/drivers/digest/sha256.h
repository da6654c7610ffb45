#pragma once

// The one use of OpenSSL's digests: where two texts must not share an id, or a secret is known
// only by its digest.

#include <array>
#include <cstdint>
#include <string_view>

namespace weir {

/// A SHA-256 digest.
using Digest = std::array<std::uint8_t, 32>;
Digest Sha256(std::string_view text);

/// Takes the same time wherever the two differ.
bool EqualDigests(const Digest& a, const Digest& b) noexcept;

}  // namespace weir
