#pragma once

// What the policies' tables need from a database server, so that one set of statements serves all
// servers.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "weir/result.h"

namespace weir::policy::sql {

/// The value of a `?` in a statement.
using Value = std::variant<std::int64_t, std::string_view>;

/// The rows that a statement returned, read one after the other. Columns count from 0; NULL reads
/// as 0 or as empty.
///
/// Not thread-safe.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual bool Next() = 0;
  virtual std::int64_t Int(int column) const = 0;
  virtual std::string Text(int column) const = 0;
};

/// A blocking connection to the server that is reopened by itself after a loss. Each statement
/// returns within the session's patience, of a second or more: kUnavailable if there was no answer.
///
/// Thread safety: belongs to one thread at a time, but Abort may be called from any.
class Session {
 public:
  virtual ~Session() = default;

  /// Creates or updates the tables.
  virtual Status Migrate() = 0;

  /// `sql` has a `?` for each value and nowhere else. Outside of a transaction it must be a read:
  /// it may be sent twice.
  virtual Result<std::unique_ptr<Rows>> Run(std::string_view sql,
                                            std::span<const Value> values) = 0;
  /// The same for a large read, with a timeout of at least kLongRead.
  virtual Result<std::unique_ptr<Rows>> RunLong(std::string_view sql) = 0;
  static constexpr std::chrono::milliseconds kLongRead{5000};

  /// Statements from Begin to Commit take effect together or not at all. READ COMMITTED. If the
  /// connection is lost in between, they fail.
  virtual Status Begin() = 0;
  Status Commit() { return End(true); }
  /// If this fails, the session is lost, and the transaction with it.
  void Rollback() { (void)End(false); }

  /// Within a transaction: all listeners are notified when it is committed. Does nothing if the
  /// server cannot notify.
  virtual Status Announce() { return {}; }
  /// Calls `heard` on a thread of its own for what others announce, and whenever something may have
  /// been missed.
  virtual void Listen(std::function<void()> /*heard*/) {}  // NOLINT: a server that can keeps it
  /// Whether everything announced now is received.
  virtual bool listening() const noexcept { return false; }

  /// Makes pending and later calls fail soon.
  virtual void Abort() noexcept {}

 private:
  /// Ends the transaction.
  virtual Status End(bool commit) = 0;
};

}  // namespace weir::policy::sql
