#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "store/sql/combiner.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::store::sql {

/// Remembers, in bounded memory and sometimes wrongly, which rows exist, so that those need not be
/// created before they are locked. After a wrong answer the lane creates the missing row.
///
/// Thread-safe.
class KnownKeys {
 public:
  bool Has(std::uint64_t hash) const noexcept {
    return places_[hash % kPlaces].load(std::memory_order_relaxed) == hash;
  }
  void Add(std::uint64_t hash) noexcept {
    places_[hash % kPlaces].store(hash, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 18;  // 2 MiB
  std::unique_ptr<std::atomic<std::uint64_t>[]> places_ =
      std::make_unique<std::atomic<std::uint64_t>[]>(kPlaces);
};

/// What the lanes of a pool share.
struct LaneParts {
  Combiner& combiner;
  KnownKeys& known;
  const Clock* clock;              ///< null: the server's
  std::function<Status()> create;  ///< creates the missing table, blocking; null: not allowed
};

}  // namespace weir::store::sql
