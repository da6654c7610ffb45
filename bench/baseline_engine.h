#pragma once

// The baseline of ./dev bench engine: the usual design, built with care. One locked LRU map, a
// mutex per key, tokens as doubles, one clock reading per call.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weir::bench {

/// Thread-safe.
class BaselineEngine {
 public:
  BaselineEngine(double capacity, double refill_per_second, std::size_t max_keys)
      : capacity_(capacity), per_ns_(refill_per_second / 1e9), max_keys_(max_keys) {
    index_.reserve(max_keys);
  }

  struct Answer {
    bool allowed = false;
    double remaining = 0;
    std::int64_t retry_after_ns = 0;
  };

  Answer TryAcquire(std::string_view key, std::int64_t permits = 1) {
    const std::shared_ptr<Entry> entry = GetOrCreate(key);
    const std::lock_guard hold(entry->mutex);
    const std::int64_t now = Now();
    const double elapsed = static_cast<double>(now - entry->last_refill_ns);
    entry->tokens = std::min(capacity_, entry->tokens + elapsed * per_ns_);
    entry->last_refill_ns = now;
    const auto wanted = static_cast<double>(permits);
    if (entry->tokens >= wanted) {
      entry->tokens -= wanted;
      return {true, entry->tokens, 0};
    }
    return {false, entry->tokens, static_cast<std::int64_t>((wanted - entry->tokens) / per_ns_)};
  }

 private:
  struct Entry {
    std::mutex mutex;
    double tokens = 0;
    std::int64_t last_refill_ns = 0;
  };
  struct Node {
    std::string key;
    std::shared_ptr<Entry> entry;
  };
  using Order = std::list<Node>;

  static std::int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  std::shared_ptr<Entry> GetOrCreate(std::string_view key) {
    const std::lock_guard hold(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->entry;
    }
    auto entry = std::make_shared<Entry>();
    entry->tokens = capacity_;
    entry->last_refill_ns = Now();
    order_.push_front({std::string(key), entry});
    index_.emplace(order_.front().key, order_.begin());
    if (index_.size() > max_keys_) {
      index_.erase(order_.back().key);
      order_.pop_back();
    }
    return entry;
  }

  const double capacity_;
  const double per_ns_;
  const std::size_t max_keys_;
  std::mutex mutex_;
  Order order_;  // most recently used first
  std::unordered_map<std::string_view, Order::iterator> index_;
};

}  // namespace weir::bench
