#pragma once

#include <optional>
#include <span>

#include "drivers/postgres/params.h"
#include "slots/timing.h"

namespace weir::slots::postgres {

/// The parameters version, from and until of a function: what `timed` says, if it is not null, for
/// events that may go from `earliest` on.
void AppendTiming(weir::postgres::Params& params, const Config* timed,
                  std::optional<Timing>& timing, std::span<const Millis> earliest);

/// The open times around `now`, for claims. The database's clock may differ from this machine's.
void AppendOpenNow(weir::postgres::Params& params, const Config* timed, Millis now);

}  // namespace weir::slots::postgres
