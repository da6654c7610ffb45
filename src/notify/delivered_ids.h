#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "drivers/sqlite/connection.h"
#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// The IDs of delivered events, in a SQLite file, so that an event that arrives twice is delivered
/// once, even across restarts. The latest `max` IDs are kept.
///
/// Not thread-safe: one thread at a time.
class DeliveredIds {
 public:
  /// Creates `directory` if it does not exist.
  static Result<std::unique_ptr<DeliveredIds>> Open(const std::string& directory,
                                                    std::int64_t max = 1'000'000);

  /// Those of `ids` that are present.
  Result<std::unordered_set<std::string>> Known(std::span<const std::string> ids);

  /// When the event with this ID was created, as passed to Add; 0: unknown.
  Result<Micros> CreatedAt(const std::string& id);

  /// On disk when it returns. Adding known IDs is harmless. `created`: when their events were
  /// created, in the same order; empty: unknown.
  Status Add(std::span<const std::string> ids, std::span<const Micros> created = {});

 private:
  DeliveredIds(std::unique_ptr<sqlite::Connection> connection, std::int64_t max)
      : connection_(std::move(connection)), max_(max) {}
  Status Insert(std::span<const std::string> ids, std::span<const Micros> created);

  std::unique_ptr<sqlite::Connection> connection_;
  std::int64_t max_;
};

}  // namespace weir::notify
