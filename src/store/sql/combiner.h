#pragma once

// How it works: applications wait in one queue, in order of arrival. A free lane (a connection to
// the database) takes all of them that it may: those whose keys are in no transaction in flight and
// are not shared with an earlier application that was left in the queue. So a hot key's
// applications gather while its transaction is under way and go together in the next, in order;
// others overtake them; and the lanes of one process never wait for each other's rows.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/key_hash.h"
#include "store/sql/batch.h"
#include "store/sql/submission.h"

namespace weir::store::sql {

struct CombinerOptions {
  /// From Apply to the answer, in all cases.
  std::chrono::milliseconds timeout{1000};
  /// In one transaction.
  std::size_t max_applications = 1024;
  std::size_t max_keys = 512;
  /// Applications that may wait; more are refused immediately.
  std::size_t max_waiting = 65'536;
};

/// Thread-safe.
class Combiner {
 public:
  /// `wake` asks the backend to let one free lane call Take. It may be called from any thread and
  /// must not call back.
  Combiner(CombinerOptions options, std::function<void()> wake);
  /// Stops.
  ~Combiner();

  const KeyHash& hash() const noexcept { return hash_; }

  void Submit(std::shared_ptr<Submission> submission);

  /// The work of the next transaction, or null: then the lane is free, and `wake` is called when
  /// there is work.
  std::unique_ptr<Batch> Take();

  /// Answers everything in `batch`, with the results of its Run or with the reason why it failed.
  /// The lane must call Take next.
  void Finish(std::unique_ptr<Batch> batch, Status status);

  /// Answers everything that waits, and all later submissions, with `error`.
  void Stop(const Error& error);

 private:
  using Submissions = std::vector<std::shared_ptr<Submission>>;

  bool IsFree(const Item& item) const noexcept;
  bool MayTake(const Item& item) const noexcept;
  struct Taken {
    std::vector<Waiting> items;
    bool all = true;  ///< else there was more than fits in one transaction
  };
  Taken TakeItems();
  bool WakeOne();
  /// Null if there are none. Requires the lock.
  std::shared_ptr<Submission> ReleasesOf(const Batch& batch) const;
  void Answer(const std::shared_ptr<Submission>& owner, Item& item, Submissions& complete);
  void Abandon(Submission& submission);
  void DropAnswered();
  void AwaitDeadline(std::unique_lock<std::mutex>& hold);
  void WatchDeadlines();
  Submissions Expired();
  static void Deliver(Submissions complete);

  const CombinerOptions options_;
  const std::function<void()> wake_;
  const KeyHash hash_;

  std::mutex mutex_;
  std::deque<Waiting> queue_;
  std::deque<std::shared_ptr<Submission>> pending_;  // in order of their deadlines
  std::vector<std::uint32_t> queued_;                // waiting charges per stripe
  std::vector<bool> busy_;                           // stripes of transactions in flight
  std::vector<std::uint64_t> skipped_;               // the scan that left a stripe behind
  std::uint64_t scan_ = 0;
  std::size_t free_lanes_ = 0;
  bool quiet_ = false;   // nothing was submitted since the watcher began to wait
  bool dozing_ = false;  // the watcher waits to be woken
  bool stopped_ = false;
  Error stop_error_;
  std::condition_variable deadlines_changed_;
  std::thread watcher_;
};

}  // namespace weir::store::sql
