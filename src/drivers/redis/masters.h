#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "drivers/redis/url.h"

namespace weir::redis {

/// Small numbers for the masters of a cluster, the same on all threads that share this object.
/// A number belongs to one master forever; 0 to none.
///
/// Thread-safe.
class Masters {
 public:
  /// Numbers below `count`; masters beyond share them.
  explicit Masters(std::uint32_t count) : count_(count) {}

  std::uint32_t NumberOf(const Endpoint& endpoint) {
    const std::lock_guard lock(mutex_);
    const auto known = numbers_.find(endpoint);
    if (known != numbers_.end()) return known->second;
    const auto number = 1 + static_cast<std::uint32_t>(numbers_.size()) % (count_ - 1);
    if (numbers_.size() < kMaxKnown) numbers_.emplace(endpoint, number);
    return number;
  }

 private:
  /// An impostor answering in a cluster's place cannot fill our memory.
  static constexpr std::size_t kMaxKnown = 4096;

  const std::uint32_t count_;
  std::mutex mutex_;
  std::map<Endpoint, std::uint32_t> numbers_;
};

}  // namespace weir::redis
