#include "store/memory/sweeper.h"

namespace weir::store::memory {

Sweeper::Sweeper(Engine& engine, std::chrono::milliseconds interval)
    : engine_(engine), interval_(interval), thread_([this] { Run(); }) {}

Sweeper::~Sweeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::uint64_t Sweeper::freed() const {
  const std::lock_guard lock(mutex_);
  return freed_;
}

void Sweeper::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [this] { return stopping_; })) {
    lock.unlock();
    const std::size_t freed = engine_.Sweep();
    lock.lock();
    freed_ += freed;
  }
}

}  // namespace weir::store::memory
