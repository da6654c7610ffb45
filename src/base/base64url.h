#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// The bytes as base64url without padding (RFC 4648, section 5): letters, digits, '-' and '_',
/// which pass through headers, queries and shells unchanged.
std::string Base64UrlEncoded(std::string_view bytes);

/// Returns nothing if `text` is not exactly what Base64UrlEncoded makes of some bytes.
std::optional<std::string> Base64UrlDecoded(std::string_view text);

}  // namespace weir
