#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::store::sql {

/// Callbacks for what a Mark finds, run on the thread that raises it. Without `lost`, there is no
/// mark.
struct StateWatcher {
  std::function<void()> lost = {};
  std::function<void(const Error&)> failed = {};  ///< once: it cannot be raised
};

/// The row in the table of limits that is a mark, not a limit. Keys of limits contain a '|'.
inline constexpr std::string_view kMarkId = "#weir-mark";
/// Its number when it is created, in the column where other rows have the time from which they may
/// be deleted: later than any.
inline constexpr std::int64_t kFirstMark = (std::int64_t{1} << 62) + 1;

/// Notices that a database has lost data and goes on as if nothing had happened: restored from a
/// backup, recreated, failed over to a replica that is behind. Each node increments the number in
/// one row every few seconds. It grows unless data was lost: then it is smaller, or belongs to
/// another row, which has a different random text. A node that has just started has nothing to
/// compare with, and increments by several nodes can hide a loss of less than one interval.
///
/// Not thread-safe: belongs to the thread that raises it.
class Mark {
 public:
  explicit Mark(StateWatcher watcher,
                std::chrono::milliseconds interval = std::chrono::milliseconds(5000))
      : watcher_(std::move(watcher)), interval_(interval) {}

  /// Whether to raise it now; then not again until the interval is over, unless Fail reports that
  /// the server did not answer.
  bool Due();
  /// The state for the row, if it has to be created: unique, and parsed as a state without any
  /// algorithm.
  static std::string NewState();
  /// The row as it is after the increment.
  void Take(std::string_view state, std::int64_t number);
  void Fail(const Error& error);

 private:
  const StateWatcher watcher_;
  const std::chrono::milliseconds interval_;
  std::chrono::steady_clock::time_point due_{};
  std::string state_;  // empty: not known
  std::int64_t number_ = 0;
  bool failed_ = false;
};

}  // namespace weir::store::sql
