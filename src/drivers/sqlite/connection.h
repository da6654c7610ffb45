#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text_map.h"
#include "drivers/sqlite/statement.h"
#include "weir/result.h"

struct sqlite3;

namespace weir::sqlite {

/// One connection to one SQLite file. Errors carry these codes: kAlreadyExists for a violated
/// UNIQUE or PRIMARY KEY, kFailedPrecondition for any other constraint, kUnavailable when the file
/// is busy, full or unreadable, kInternal for the rest.
///
/// Not thread-safe: one thread at a time.
class Connection {
 public:
  struct Options {
    std::string path;
    std::chrono::milliseconds busy_timeout{5000};
    bool read_only = false;
  };

  /// Opens the file (created with mode 0600 if missing) with WAL, synchronous=FULL and foreign
  /// keys.
  static Result<std::unique_ptr<Connection>> Open(const Options& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Compiles `sql`, or reuses it compiled from the last time.
  Result<Statement> Prepare(std::string_view sql);

  /// Runs one or more statements that take no parameters and whose rows do not matter.
  Status Execute(const char* sql);

  /// Runs `sql` with `values` as ?1, ?2, …; its rows do not matter.
  template <typename... Values>
  Status Run(std::string_view sql, const Values&... values) {
    Result<Statement> statement = Prepare(sql);
    if (!statement.ok()) return statement.error();
    return statement->BindAll(values...).Run();
  }

  /// Returns `read(row)` of each row of `sql` with `values` as ?1, ?2, …
  template <typename Read, typename... Values>
  auto ReadAll(std::string_view sql, Read read, const Values&... values)
      -> Result<std::vector<std::invoke_result_t<Read, const Statement&>>> {
    Result<Statement> query = Prepare(sql);
    if (!query.ok()) return query.error();
    std::vector<std::invoke_result_t<Read, const Statement&>> rows;
    Status done =
        query->BindAll(values...).ForEach([&](const Statement& row) { rows.push_back(read(row)); });
    if (!done.ok()) return done.error();
    return rows;
  }

  /// Likewise for the first row, if there is one.
  template <typename Read, typename... Values>
  auto ReadFirst(std::string_view sql, Read read, const Values&... values)
      -> Result<std::optional<std::invoke_result_t<Read, const Statement&>>> {
    using Row = std::optional<std::invoke_result_t<Read, const Statement&>>;
    Result<Statement> query = Prepare(sql);
    if (!query.ok()) return query.error();
    Result<bool> found = query->BindAll(values...).Step();
    if (!found.ok()) return found.error();
    return *found ? Row(read(std::as_const(*query))) : Row();
  }

  /// The first column of the first row; 0 without a row.
  template <typename... Values>
  Result<std::int64_t> ReadNumber(std::string_view sql, const Values&... values) {
    const auto found = ReadFirst(
        sql, [](const Statement& row) { return row.Int(0); }, values...);
    if (!found.ok()) return found.error();
    return found->value_or(0);
  }

  /// Rows changed by the last statement, and the rowid of the last INSERT.
  std::int64_t changes() const noexcept;
  std::int64_t last_insert_rowid() const noexcept;

  /// False inside a transaction. Some failures (disk full, I/O) end the transaction by themselves.
  bool autocommit() const noexcept;

 private:
  friend class Statement;

  explicit Connection(sqlite3* handle) : handle_(handle) {}
  Error MakeError(int code) const;
  void GiveBack(sqlite3_stmt* statement) noexcept;

  sqlite3* handle_;
  TextMap<std::vector<sqlite3_stmt*>> idle_;
};

}  // namespace weir::sqlite
