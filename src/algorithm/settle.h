#pragma once

// Settling a charge that was an estimate: what it cost less is returned, what it cost more is
// charged. docs/design/reservations.md has the definitions and why nothing is returned twice.
//
// A charge is named by a stamp, one number that follows from its decision:
//
//   token bucket     the time of the charge, nanoseconds later than that of the one before it
//   concurrency      the lease
//   anchored window  the end of the window
//   others           the time at which the charge is counted

#include <cstdint>

#include "algorithm/state.h"
#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// The capacity that Reserve may need, for any quota at least as much as CapacityForAcquire.
std::uint32_t CapacityForReserve(const Quota& quota, const State& state) noexcept;

/// Acquire of an estimate that is settled within `lasts`. Until then a token bucket remembers what
/// Settle needs to know, and the decision's lease is the stamp of the charge. For a token bucket
/// that was charged with Acquire, Settle returns nothing.
Decision Reserve(const Quota& quota, State& state, Nanos now, std::int64_t cost,
                 Nanos lasts) noexcept;

/// The stamp of a charge by Reserve that got `decision` at `now`.
Nanos StampOf(const Quota& quota, Nanos now, const Decision& decision) noexcept;

/// Changes a charge of that stamp by `change` permits and returns the key's state, as Overdraw
/// does. More is charged at `now`, whether it fits or not. Less is returned as far as it still
/// counts. Under a concurrency quota the permits of the lease are released, whatever the change.
/// State::capacity as for Acquire.
Decision Settle(const Quota& quota, State& state, Nanos now, Nanos stamp,
                std::int64_t change) noexcept;

}  // namespace weir::algorithm
