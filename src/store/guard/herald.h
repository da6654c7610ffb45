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

/// Tells other nodes what to forget, rarely and in bulk: the first message goes out immediately,
/// and hashes added within `interval` of it go together in the next, each once, up to kMaxHashes in
/// a message. So a flood of refunds costs a channel a few messages.
///
/// Thread-safe. `send` runs on the herald's thread, and never after the destructor.
class Herald {
 public:
  Herald(std::chrono::milliseconds interval, std::function<void(std::string)> send);
  ~Herald();
  Herald(const Herald&) = delete;
  Herald& operator=(const Herald&) = delete;

  /// Never blocks. While kMaxPending wait, more are dropped: other nodes forget by themselves
  /// within a second (DenyCacheOptions::longest).
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
