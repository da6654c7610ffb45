#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "store/store.h"

namespace weir::bench {

/// Makes the store on a real server for the reactor that runs `io`.
using MakeInner = std::function<std::unique_ptr<store::Store>(boost::asio::io_context& io)>;

/// What decides: the server for every check, a leasing store before it, or the memory store.
enum class Kind : std::uint8_t { kExact, kLeased, kMemory };

/// Checks a second of one hot key by callers that each ask again when they are answered: as many as
/// one connection serves without their waiting for each other (8).
double HotRate(const MakeInner& make, Kind kind);

/// What a check of a hot leased key takes longer than one of the memory store.
struct Added {
  double p50_us = 0;
  double p999_us = 0;
};
Added HotAdded(const MakeInner& make);

/// How much longer the first check of a key takes if it is leased: the ratio of medians, both kinds
/// taking turns.
double ColdRatio(const MakeInner& make);

/// One node that gets 1,000 checks a second of one key, T = 250 ms.
struct Paced {
  double calls_per_check = 0;
  double leases_held = 0;  ///< the most permits at once, in leases of T/2: what a crash loses
};
Paced AtOneThousand(const MakeInner& make);

}  // namespace weir::bench
