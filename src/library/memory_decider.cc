// The engine in this process. A limiter belongs to one thread at a time, so there are several, and
// a caller takes a free one: the engine behind them supports many threads.

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "library/deciders.h"
#include "store/memory/memory_store.h"
#include "store/memory/sweeper.h"
#include "weir/engine.h"

namespace weir::library {
namespace {

constexpr std::size_t kMostLimiters = 64;

/// Thread-safe.
class InMemory final : public Decider {
 public:
  InMemory(limiter::Shared& shared, std::size_t max_keys)
      : engine_(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = max_keys,
                                                         .keys = KeyStorage::kText,
                                                         .clock = nullptr,
                                                         .on_evict = {},
                                                         .track_changes = false}),
        sweeper_(engine_, kSweepEvery) {
    const std::size_t count =
        std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostLimiters);
    for (std::size_t i = 0; i < count; ++i) {
      seats_.push_back(std::make_unique<Seat>(shared, engine_));
    }
  }

  void Decide(limiter::Check& check, const std::function<void(limiter::Check&)>& told) override {
    Seat& seat = Take();
    const std::lock_guard lock(seat.mutex, std::adopt_lock);
    // The store is immediate: everything happens here.
    seat.limiter.Decide({&check, 1}, [&] { told(check); });
  }

  Status health() const override { return {}; }

 private:
  struct Seat {
    Seat(limiter::Shared& shared, Engine& engine)
        : limiter(shared, std::make_unique<store::memory::MemoryStore>(engine)) {}
    std::mutex mutex;
    limiter::PolicyLimiter limiter;
  };

  /// A seat locked for the caller, preferably this thread's own.
  Seat& Take() {
    const std::size_t first = std::hash<std::thread::id>{}(std::this_thread::get_id());
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      Seat& seat = *seats_[(first + i) % seats_.size()];
      if (seat.mutex.try_lock()) return seat;
    }
    Seat& seat = *seats_[first % seats_.size()];
    seat.mutex.lock();
    return seat;
  }

  Engine engine_;
  store::memory::Sweeper sweeper_;
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace

std::unique_ptr<Decider> MemoryDecider(limiter::Shared& shared, std::size_t max_keys) {
  return std::make_unique<InMemory>(shared, max_keys);
}

}  // namespace weir::library
