#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "store/store.h"

namespace weir::bench {

/// Makes the store of the reactor that runs `io`.
using MakeStore = std::function<std::unique_ptr<store::Store>(boost::asio::io_context& io)>;

/// Checks per second of 1,024 clients in total, each sending again when answered, over `keys`
/// keys chosen at random, on one reactor. The warm-up is not counted.
double MeasureRate(const MakeStore& make, std::size_t keys, double seconds);

struct Latency {
  double p50_ms = 0;
  double p99_ms = 0;
};
/// The latency that the store adds to a check at 1,000 checks per second, on 100,000 keys.
Latency MeasureLatency(const MakeStore& make, double seconds);

}  // namespace weir::bench
