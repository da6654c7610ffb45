#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

struct pg_result;

namespace weir::postgres {

/// The rows that a statement returned, in binary format. Rows and columns count from 0.
///
/// Not thread-safe; may be moved to another thread. Views live as long as this object.
class Rows {
 public:
  Rows() = default;
  explicit Rows(pg_result* result) : result_(result) {}

  int size() const noexcept;
  /// Rows that INSERT, UPDATE or DELETE touched.
  std::int64_t affected() const noexcept;

  bool IsNull(int row, int column) const noexcept;
  /// smallint, integer, bigint or boolean. NULL reads as 0.
  std::int64_t Int(int row, int column) const noexcept;
  /// text, varchar, name, char, json (not jsonb) or bytea. NULL reads as empty.
  std::string_view Text(int row, int column) const noexcept;

 private:
  struct Clear {
    void operator()(pg_result* result) const noexcept;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace weir::postgres
