#pragma once

// Settling a charge that was an estimate: what it cost less is given back, what it cost more is
// charged. docs/design/reservations.md has the definitions and why nothing is given back twice.
//
// A charge is named by a stamp, one number that follows from its decision:
//
//   token bucket     when the bucket will be full, if nothing more is charged
//   concurrency      the lease
//   others           the moment that the charge is counted at

#include <cstdint>

#include "algorithm/state.h"
#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// The stamp of a charge that got `decision` at `now`.
Nanos StampOf(const Quota& quota, Nanos now, const Decision& decision) noexcept;

/// Changes a charge of that stamp by `change` permits and returns the key's state, as Overdraw
/// does. More is charged at `now`, whether it fits or not. Less is given back as far as it still
/// weighs. Under a concurrency quota the permits of the lease are released, whatever the change.
/// State::capacity as for Acquire.
Decision Settle(const Quota& quota, State& state, Nanos now, Nanos stamp,
                std::int64_t change) noexcept;

}  // namespace weir::algorithm
