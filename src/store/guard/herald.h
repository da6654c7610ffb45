#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>

namespace weir::store::guard {

/// Tells other nodes what to forget, seldom and much at a time: the first word goes out at once,
/// and what comes within `interval` of it goes together in the next, each hash once, up to
/// kMaxHashes in a message. So a flood of refunds costs a channel a few messages.
///
/// Thread-safe. `send` runs on the herald's thread, and no more after the destructor.
class Herald {
 public:
  Herald(std::chrono::milliseconds interval, std::function<void(std::string)> send);
  ~Herald();
  Herald(const Herald&) = delete;
  Herald& operator=(const Herald&) = delete;

  /// Never blocks. While kMaxPending wait, more are dropped: other nodes forget by
  /// themselves within a second (DenyCacheOptions::longest).
  void Tell(std::span<const std::uint64_t> hashes);

  static constexpr std::size_t kMaxPending = 65'536;

 private:
  void Run();
  void SendAll(const std::unordered_set<std::uint64_t>& hashes);

  const std::chrono::milliseconds interval_;
  const std::function<void(std::string)> send_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_set<std::uint64_t> pending_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace weir::store::guard
