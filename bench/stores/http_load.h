#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::bench {

/// Checks per second over HTTP from `clients` connections on one thread, each of which waits for
/// its response before it sends again; over `keys` keys.
double MeasureHttp(std::uint16_t port, int clients, std::size_t keys, double seconds);

}  // namespace weir::bench
