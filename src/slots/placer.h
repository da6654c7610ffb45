#pragma once

// The search for places, for stores that do it in the program. PostgreSQL does the same inside one
// function (postgres/sql/placing.sql); one suite of tests holds both to the same rules.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "slots/calendar.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

/// One window as the search sees it.
struct WindowRoom {
  Millis start = 0;
  std::int64_t used = 0;
  std::int64_t used_by_class = 0;
  bool open = true;
};

/// So many places taken in one window.
struct Taken {
  Millis window = 0;
  std::int64_t count = 0;
};

/// The rows of one config's windows, as seen by one class of tenants. A closed window always has a
/// successor row, and rows are never deleted; so from a window that has a row, the first open row
/// is the earliest window with room.
///
/// Not thread-safe: used inside one transaction.
class WindowTable {
 public:
  virtual ~WindowTable() = default;

  virtual Result<std::optional<WindowRoom>> Find(Millis start) = 0;
  /// Open windows in order from `from` on, ending early where the next window has no row.
  virtual Result<std::vector<WindowRoom>> ListOpen(Millis from, std::size_t limit) = 0;
  /// Rows for `count` windows from `from` on, where they are missing.
  virtual Status Create(Millis from, std::size_t count) = 0;
  /// Adds to the counters, closes full windows and gives them successors.
  virtual Status Take(std::span<const Taken> taken) = 0;
};

/// The numbers of a config that matter to one class.
struct PlaceRules {
  Millis size = 1;
  std::int64_t max = 1;
  std::int64_t headroom = 0;
  std::int64_t fair_windows = 0;
  bool shared = false;  ///< tenants have shares: weight of total
  std::int64_t weight = 1;
  std::int64_t total = 1;
  Millis last = kMaxInstant;  ///< no window that begins later
};

/// The window of each request, or nothing where the search limit was reached. `requested` is
/// sorted.
Result<std::vector<std::optional<Millis>>> Place(const PlaceRules& rules,
                                                 std::span<const Millis> requested,
                                                 WindowTable& table);

/// The same within open times, one after the other; all the time if there are none. Windows that
/// reach beyond an open time's end are not used.
Result<std::vector<std::optional<Millis>>> PlaceWhenOpen(const PlaceRules& rules,
                                                         std::span<const Millis> requested,
                                                         std::span<const OpenTime> open,
                                                         WindowTable& table);

}  // namespace weir::slots
