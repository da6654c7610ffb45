#pragma once

// How it works: one thread runs the guarded store (deadline, breaker, remembered refusals), as a
// reactor of the service does. A call becomes a Job that is posted to that thread; what is posted
// while the store is busy goes out together. A call that waits is one with a callback that wakes
// it.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "drivers/io_thread.h"
#include "library/backend.h"
#include "library/job.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "weir/shared_limiter.h"

namespace weir {

/// What a SharedLimiter does: checks questions and carries them to the store's thread and back.
///
/// Thread safety: as SharedLimiter.
class SharedLimiter::Core {
 public:
  using Job = library::Job;
  using JobDone = std::function<void(Job&)>;

  explicit Core(const SharedLimiterOptions& options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Status Open(const std::string& url);

  /// One key's call.
  void Ask(store::Op op, std::string_view key, const Quota& quota, std::int64_t cost,
           std::int64_t lease, JobDone done);
  void AskAll(std::span<const weir::Ask> asks, JobDone done);
  void Reserve(std::string_view key, const Quota& quota, std::int64_t cost,
               std::chrono::milliseconds lasts, JobDone done);
  void Settle(std::string_view text, std::int64_t cost, JobDone done);

  /// Whether waiting here would be waiting for this very thread.
  bool on_own_thread() const noexcept;
  Status health() const;

 private:
  /// Sends what `fill` makes of a job, unless it says that something is wrong.
  void AskAs(const std::function<Status(Job&)>& fill, JobDone done);
  static void Refuse(Job& job, Error error);
  void Send(std::unique_ptr<Job> job);
  void Apply(Job* job);

  const SharedLimiterOptions options_;
  store::guard::Guard guard_;
  std::unique_ptr<library::Backend> backend_;
  IoThread thread_;
  std::unique_ptr<store::guard::GuardedStore> store_;
  std::unique_ptr<store::guard::Prober> prober_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::thread::id> closing_{};
};

}  // namespace weir
