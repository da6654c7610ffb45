#pragma once

// How it works: one thread runs the guarded store (deadline, breaker, cached refusals), as a
// reactor of the service does. A call becomes a Job that is posted to that thread; jobs posted
// while the store is busy go out together. A blocking call is one with a callback that wakes
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

/// The work of a SharedLimiter: validates calls and carries them to the store's thread and back.
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

  /// Whether a blocking call here would wait for its own thread.
  bool on_own_thread() const noexcept;
  Status health() const;

 private:
  /// Sends the job that `fill` builds, unless it returns an error.
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
