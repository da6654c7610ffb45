#include "support/stopwatch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace weir::test {

Stopwatch::Stopwatch() {
  AddWaits(::getpid(), waits_);
  began_ = std::chrono::steady_clock::now();
}

std::chrono::nanoseconds Stopwatch::elapsed() const {
  std::chrono::nanoseconds left = std::chrono::steady_clock::now() - began_;
  Waits now;
  AddWaits(::getpid(), now);
  for (const auto& [thread, waited] : now) {
    const auto before = waits_.find(thread);
    left -= before == waits_.end() ? waited : waited - before->second;
  }
  return std::max(left, std::chrono::nanoseconds(0));
}

void Stopwatch::AddWaits(pid_t process, Waits& waits) {
  std::error_code gone;
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    // Nanoseconds running on a processor, and waiting for one.
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    std::ifstream(task.path() / "schedstat") >> ran >> waited;
    waits[std::stoi(task.path().filename())] = std::chrono::nanoseconds(waited);
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) AddWaits(child, waits);
  }
}

}  // namespace weir::test
