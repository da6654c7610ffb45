#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

namespace weir::test {

/// Measures how long something takes, less the time for which threads of this program and of the
/// processes it started were ready and waited for a processor: a limit that the product promises
/// then holds on a busy machine, too, and is as strict as before on one that has nothing else to
/// do.
///
/// Thread safety: for the thread that made it.
class Stopwatch {
 public:
  Stopwatch();

  std::chrono::nanoseconds elapsed() const;

 private:
  using Waits = std::map<pid_t, std::chrono::nanoseconds>;  // by thread

  /// Of the process's threads and, one by one, of its descendants.
  static void AddWaits(pid_t process, Waits& waits);

  Waits waits_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace weir::test
