#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "weir/result.h"

struct sqlite3_stmt;

namespace weir::sqlite {

class Connection;

/// A prepared statement, borrowed from its Connection and returned on destruction, so that the same
/// SQL text is compiled once. Parameters and columns are numbered as in SQLite: parameters from 1,
/// columns from 0.
///
/// Not thread-safe: belongs to the thread that uses its Connection, and must not outlive it.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  /// Text is copied. A failed bind is reported by the next Step.
  Statement& Bind(int index, std::int64_t value);
  Statement& Bind(int index, std::string_view text);
  Statement& Bind(int index, const char* text) { return Bind(index, std::string_view(text)); }
  Statement& BindNull(int index);
  /// Binds ?1, ?2, …: numbers, enums and texts.
  template <typename... Values>
  Statement& BindAll(const Values&... values) {
    [[maybe_unused]] int index = 0;
    (BindValue(++index, values), ...);
    return *this;
  }

  /// True: there is a row to read. False: there are no (more) rows.
  Result<bool> Step();

  /// Runs to the end, ignoring rows, and makes the statement ready to be bound again.
  Status Run();

  /// Calls `read(*this)` for each remaining row.
  template <typename Read>
  Status ForEach(Read read) {
    for (;;) {
      Result<bool> row = Step();
      if (!row.ok()) return row.error();
      if (!*row) return {};
      read(*this);
    }
  }

  /// Makes it ready to be bound and stepped again; parameters keep their values.
  void Reset();

  /// Reads the current row. Views live until the next Step or Reset. NULL reads as 0 or as empty.
  bool IsNull(int column) const;
  std::int64_t Int(int column) const;
  std::string_view Text(int column) const;

 private:
  friend class Connection;
  Statement(Connection& owner, sqlite3_stmt* handle) : owner_(&owner), handle_(handle) {}
  template <typename Value>
  void BindValue(int index, const Value& value) {
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
      Bind(index, static_cast<std::int64_t>(value));
    } else {
      Bind(index, std::string_view(value));
    }
  }
  void Note(int code) noexcept;

  Connection* owner_;
  sqlite3_stmt* handle_;
  int bind_error_ = 0;
};

}  // namespace weir::sqlite
