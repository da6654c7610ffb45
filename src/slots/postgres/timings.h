#pragma once

#include <optional>
#include <span>

#include "drivers/postgres/params.h"
#include "slots/timing.h"

namespace weir::slots::postgres {

/// Appends the parameters version, from and until of a function: those of `timed`, if not null, for
/// events that may be placed from `earliest` on.
void AppendTiming(weir::postgres::Params& params, const Config* timed,
                  std::optional<Timing>& timing, std::span<const Millis> earliest);

/// Appends the open times around `now`, for claims. The database's clock may differ from this one.
void AppendOpenNow(weir::postgres::Params& params, const Config* timed, Millis now);

}  // namespace weir::slots::postgres
