#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/query.h"
#include "weir/result.h"

namespace weir::http {

/// Percent-decodes one path segment. Nothing for a broken escape, for a NUL byte or a control
/// character, and for bytes that are not UTF-8: such a name could not be shown or stored safely.
std::optional<std::string> DecodeSegment(std::string_view text);

/// Like DecodeSegment, with '+' for a space, as in query strings.
std::optional<std::string> DecodeQuery(std::string_view text);

/// Likewise for any bytes at all, for keys of clients, which may contain anything: escape them
/// wherever they are shown. Nothing for a broken escape.
std::optional<std::string> DecodeAnySegment(std::string_view text);
std::optional<std::string> DecodeAnyQuery(std::string_view text);

using weir::QueryReader;

/// The decoded value of the first pair with this key; nothing if absent or badly encoded.
std::optional<std::string> QueryValue(std::string_view query, std::string_view key);

/// Likewise for a whole number within bounds; `otherwise` if it is absent.
Result<std::int64_t> QueryNumber(std::string_view query, std::string_view key, std::int64_t low,
                                 std::int64_t high, std::int64_t otherwise);

/// An error for a parameter that is none of `names`: a misspelt one would silently not count, and a
/// `?version=3` is to keep a change from being lost.
Status CheckQuery(std::string_view query, std::initializer_list<std::string_view> names);

}  // namespace weir::http
