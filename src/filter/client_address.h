#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/ip.h"

namespace weir::filter {

/// Gives the nth value (from 0) of a header, lines in the order they came; nullopt beyond the last.
using NthValue = std::function<std::optional<std::string_view>(std::size_t n)>;

/// Whose request this is: the peer, unless the peer is a trusted proxy. Then the rightmost hop of
/// X-Forwarded-For that is not itself trusted, since every hop left of that one may be made up by
/// it. Where the chain holds nothing else, or something that is not an address, the last trusted
/// hop.
IpAddress ResolveClient(const IpAddress& peer, const NthValue& forwarded_for,
                        std::span<const IpNetwork> trusted);

}  // namespace weir::filter
