#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "store/store.h"

namespace weir::bench {

/// Makes the store on a real server for the reactor that runs `io`.
using MakeInner = std::function<std::unique_ptr<store::Store>(boost::asio::io_context& io)>;

/// What decides: the server for every check, a leasing store in front of it, or the memory store.
enum class Kind : std::uint8_t { kExact, kLeased, kMemory };

/// Checks per second of one hot key by callers that each send again when answered: as many as one
/// connection serves without them waiting for each other (8).
double HotRate(const MakeInner& make, Kind kind);

/// How much longer a check of a hot leased key takes than one of the memory store.
struct Added {
  double p50_us = 0;
  double p999_us = 0;
};
Added HotAdded(const MakeInner& make);

/// How much longer the first check of a key takes if it is leased: the ratio of medians, the two
/// kinds alternating.
double ColdRatio(const MakeInner& make);

/// One node that gets 1,000 checks a second of one key, T = 250 ms.
struct Paced {
  double calls_per_check = 0;
  double leases_held = 0;  ///< most permits held at a time, in leases of T/2: what a crash loses
};
Paced AtOneThousand(const MakeInner& make);

}  // namespace weir::bench
