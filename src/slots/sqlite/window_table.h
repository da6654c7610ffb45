#pragma once

#include <string>

#include "drivers/sqlite/connection.h"
#include "slots/placer.h"

namespace weir::slots::sqlite {

/// One config's windows in the embedded database. An empty `tenant_class` means that the config has
/// no shares.
///
/// Not thread-safe: lives inside a job of the writer.
class SqliteWindowTable final : public WindowTable {
 public:
  SqliteWindowTable(weir::sqlite::Connection& connection, std::int64_t config_id, Millis size,
                    std::int64_t max, std::string tenant_class)
      : connection_(connection),
        config_id_(config_id),
        size_(size),
        max_(max),
        class_(std::move(tenant_class)) {}

  Result<std::optional<WindowRoom>> Find(Millis start) override;
  Result<std::vector<WindowRoom>> ListOpen(Millis from, std::size_t limit) override;
  Status Create(Millis from, std::size_t count) override;
  Status Take(std::span<const Taken> taken) override;

  /// One place less.
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
