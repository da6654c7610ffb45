#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "weir/engine.h"

namespace weir::store::memory {

/// Frees the memory of keys that have nothing left to remember, at an interval: clients that came
/// once and never again. Nothing is lost by it; a key that comes back finds its limit as full as it
/// would have been.
///
/// Thread-safe.
class Sweeper {
 public:
  /// The engine must outlive this.
  Sweeper(Engine& engine, std::chrono::milliseconds interval);
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  std::uint64_t freed() const;

 private:
  void Run();

  Engine& engine_;
  const std::chrono::milliseconds interval_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::uint64_t freed_ = 0;
  std::thread thread_;
};

}  // namespace weir::store::memory
