#include "store/guard/herald.h"

#include <utility>
#include <vector>

#include "store/guard/guard.h"

namespace weir::store::guard {

Herald::Herald(std::chrono::milliseconds interval, std::function<void(std::string)> send)
    : interval_(interval), send_(std::move(send)), thread_([this] { Run(); }) {}

Herald::~Herald() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Herald::Tell(std::span<const std::uint64_t> hashes) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = pending_.empty();
    for (const std::uint64_t hash : hashes) {
      if (pending_.size() >= kMaxPending) break;
      pending_.insert(hash);
    }
  }
  if (first) changed_.notify_one();
}

void Herald::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    if (stopping_) return;
    const auto hashes = std::exchange(pending_, {});
    lock.unlock();
    SendAll(hashes);
    lock.lock();
    if (changed_.wait_for(lock, interval_, [this] { return stopping_; })) return;
  }
}

void Herald::SendAll(const std::unordered_set<std::uint64_t>& hashes) {
  std::vector<std::uint64_t> message;
  message.reserve(kMaxHashes);
  for (const std::uint64_t hash : hashes) {
    message.push_back(hash);
    if (message.size() < kMaxHashes) continue;
    send_(WriteHashes(message));
    message.clear();
  }
  if (!message.empty()) send_(WriteHashes(message));
}

}  // namespace weir::store::guard
