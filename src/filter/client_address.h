#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/ip.h"

namespace weir::filter {

/// Returns the nth value (from 0) of a header, in order of its lines; nullopt beyond the last.
using NthValue = std::function<std::optional<std::string_view>(std::size_t n)>;

/// The client a request comes from: the peer, unless the peer is a trusted proxy. Then the
/// rightmost hop of X-Forwarded-For that is not itself trusted, since that hop may have made up
/// every hop to its left. If there is no such hop, or something that is not an address comes first,
/// the last trusted hop.
IpAddress ResolveClient(const IpAddress& peer, const NthValue& forwarded_for,
                        std::span<const IpNetwork> trusted);

}  // namespace weir::filter
