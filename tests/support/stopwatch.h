#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

namespace weir::test {

/// Measures how long something takes, minus the time during which threads of this program and of
/// the processes it started were ready and waiting for a processor: a time limit that the product
/// promises then holds on a busy machine, too, and is as strict as before on one that is otherwise
/// idle.
///
/// Thread safety: for the thread that made it.
class Stopwatch {
 public:
  Stopwatch();

  std::chrono::nanoseconds elapsed() const;

 private:
  using Waits = std::map<pid_t, std::chrono::nanoseconds>;  // by thread

  /// Adds those of the process's threads and, recursively, of its descendants.
  static void AddWaits(pid_t process, Waits& waits);

  Waits waits_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace weir::test
