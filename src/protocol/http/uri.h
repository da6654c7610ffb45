#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/query.h"

namespace weir::http {

/// Percent-decodes one path segment. Nothing for a broken escape, for a NUL byte or a control
/// character, and for bytes that are not UTF-8: such a name could not be shown or stored safely.
std::optional<std::string> DecodeSegment(std::string_view text);

/// Like DecodeSegment, with '+' for a space, as in query strings. See Query for all parameters.
std::optional<std::string> DecodeQuery(std::string_view text);

/// Likewise for any bytes at all, for keys of clients, which may contain anything: escape them
/// wherever they are shown. Nothing for a broken escape.
std::optional<std::string> DecodeAnySegment(std::string_view text);
std::optional<std::string> DecodeAnyQuery(std::string_view text);

using weir::QueryReader;

}  // namespace weir::http
