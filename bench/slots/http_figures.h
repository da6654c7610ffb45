#pragma once

#include <cstdint>

namespace weir::bench {

/// Single events per second over HTTP with `clients` connections, each waiting for its response
/// before it sends again. All events request the same time.
double MeasureSingles(std::uint16_t port, int clients, double seconds);

/// Seconds to assign `count` events for one time in batches of 10,000 over two connections.
double MeasureBatches(std::uint16_t port, int count);

/// Creates the config "http": windows of four seconds, 100 events each.
void MakeConfig(std::uint16_t port);

}  // namespace weir::bench
