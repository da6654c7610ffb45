#pragma once

// The search for places. PostgreSQL does the same inside one function (postgres/sql/placing.sql);
// one conformance suite holds both to the same rules.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "slots/calendar.h"
#include "slots/sqlite/window_table.h"

namespace weir::slots::sqlite {

/// The numbers of a config that matter to one class.
struct PlaceRules {
  Millis size = 1;
  std::int64_t max = 1;
  std::int64_t headroom = 0;
  std::int64_t fair_windows = 0;
  bool shared = false;  ///< tenants have shares: `weight` of `total`
  std::int64_t weight = 1;
  std::int64_t total = 1;
  Millis last = kMaxInstant;  ///< windows that begin later are not used
};

/// The window of each request, or nullopt where the search limit was reached. `requested` must be
/// sorted. Searches the open times one after the other; if there are none, all times are open.
/// Windows that reach beyond an open time's end are not used.
Result<std::vector<std::optional<Millis>>> Place(const PlaceRules& rules,
                                                 std::span<const Millis> requested,
                                                 std::span<const OpenTime> open,
                                                 WindowTable& table);

}  // namespace weir::slots::sqlite
