#pragma once

#include <chrono>
#include <thread>

namespace weir::test {

/// Waits until `condition()` holds; false if it does not within `timeout`. For what cannot notify.
template <typename Condition>
[[nodiscard]] bool WaitUntil(Condition condition,
                             std::chrono::milliseconds timeout = std::chrono::seconds(120)) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace weir::test
