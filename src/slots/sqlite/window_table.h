#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/slot.h"

namespace weir::slots::sqlite {

/// One window as the search sees it.
struct WindowRoom {
  Millis start = 0;
  std::int64_t used = 0;
  std::int64_t used_by_class = 0;
  bool open = true;
};

/// The number of places taken in one window.
struct Taken {
  Millis window = 0;
  std::int64_t count = 0;
};

/// The rows of one config's windows, as seen by one class of tenants; an empty `tenant_class` means
/// that the config has no shares. A closed window always has a successor row, and rows are never
/// deleted; so from a window that has a row, the first open row is the earliest window with room.
///
/// Not thread-safe: lives inside a job of the writer.
class WindowTable {
 public:
  WindowTable(weir::sqlite::Connection& connection, std::int64_t config_id, Millis size,
              std::int64_t max, std::string tenant_class)
      : connection_(connection),
        config_id_(config_id),
        size_(size),
        max_(max),
        class_(std::move(tenant_class)) {}

  Result<std::optional<WindowRoom>> Find(Millis start);
  /// Open windows in order from `from` on, ending early where the next window has no row.
  Result<std::vector<WindowRoom>> ListOpen(Millis from, std::size_t limit);
  /// Inserts the missing rows among the `count` windows from `from` on.
  Status Create(Millis from, std::size_t count);
  /// Adds to the counters, closes full windows and gives them successors.
  Status Take(std::span<const Taken> taken);
  /// Frees one place.
  Status GiveBack(Millis window);

 private:
  Result<std::int64_t> UsedByClass(Millis window);
  Status TakeOne(const Taken& taken);

  weir::sqlite::Connection& connection_;
  const std::int64_t config_id_;
  const Millis size_;
  const std::int64_t max_;
  const std::string class_;
};

}  // namespace weir::slots::sqlite
