#pragma once

#include <chrono>
#include <string_view>

#include "weir/result.h"

namespace weir {

/// Writes lines to a pipe or a terminal.
///
/// Not thread-safe.
class LineWriter {
 public:
  /// `fd` must outlive this.
  explicit LineWriter(int fd) : fd_(fd) {}

  /// Writes all of `line`, which ends with a newline, or says why not: whoever reads at the other
  /// end may have stopped, which must not stop the writer for good. What was written by then stays
  /// written. A line that was cut so is ended before the next one, which would be part of it.
  Status Write(std::string_view line, std::chrono::steady_clock::time_point deadline);

 private:
  Status WriteAll(std::string_view bytes, std::chrono::steady_clock::time_point deadline);

  const int fd_;
  bool cut_ = false;
};

}  // namespace weir
