#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::store::sql {

/// Who is told what a Mark finds, on the thread of whoever raises it. Without `lost`, there is
/// none.
struct StateWatcher {
  std::function<void()> lost = {};
  std::function<void(const Error&)> failed = {};  ///< once: it cannot be raised
};

/// The row of the table of limits that is a mark and no limit. Keys of limits have a '|'.
inline constexpr std::string_view kMarkId = "#weir-mark";
/// Its number when it is made, where other rows have the time from which they may be deleted: later
/// than any.
inline constexpr std::int64_t kFirstMark = (std::int64_t{1} << 62) + 1;

/// Notices that a database has lost data and goes on as if nothing had happened: restored from a
/// backup, made again, failed over to a replica that is behind. Each node raises the number in one
/// row every few seconds. Whoever raises it sees it grow, unless it was lost: then it is smaller,
/// or of another row, which a random text tells. A node that has just started has nothing to
/// compare with, and what several nodes raise can hide a loss of less than one interval.
///
/// Not thread-safe: belongs to the thread that raises it.
class Mark {
 public:
  explicit Mark(StateWatcher watcher,
                std::chrono::milliseconds interval = std::chrono::milliseconds(5000))
      : watcher_(std::move(watcher)), interval_(interval) {}

  /// Whether to raise it now; then not again before the interval is over, unless it is told that
  /// the server did not answer.
  bool Due();
  /// The state of the row, should it have to be made: one that no other has, and that reads as one
  /// without any algorithm.
  static std::string NewState();
  /// The row as it is after it was raised.
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
