#include "store/sql/combiner.h"

#include <algorithm>
#include <utility>

#include "store/sql/combining_store.h"

namespace weir::store::sql {

using Clock = std::chrono::steady_clock;

Combiner::Combiner(CombinerOptions options, std::function<void()> wake)
    : options_(options),
      wake_(std::move(wake)),
      hash_(KeyHash::Draw()),
      queued_(kStripes),
      busy_(kStripes),
      skipped_(kStripes),
      watcher_([this] { WatchDeadlines(); }) {}

Combiner::~Combiner() {
  Stop({Code::kUnavailable, "the store was closed"});
  watcher_.join();
}

void Combiner::Submit(std::shared_ptr<Submission> submission) {
  bool wake = false;
  {
    const std::lock_guard hold(mutex_);
    // Under the lock, so that deadlines are in queue order.
    submission->deadline = Clock::now() + options_.timeout;
    quiet_ = false;
    const bool full = queue_.size() + submission->unanswered > options_.max_waiting;
    if (stopped_ || full || submission->unanswered == 0) {
      const Error error =
          stopped_ ? stop_error_
                   : Error{Code::kResourceExhausted, "too many checks are waiting for the store"};
      for (Item& item : submission->items()) {
        if (item.answered) continue;
        item.status = error;
        item.applied = false;
        item.answered = true;
      }
    } else {
      bool runnable = false;
      for (Item& item : submission->items()) {
        if (item.answered) continue;
        runnable = runnable || IsFree(item);
        for (const ItemCharge& charge : item.charges) ++queued_[charge.stripe];
        queue_.push_back({submission, &item});
      }
      pending_.push_back(submission);
      if (dozing_) deadlines_changed_.notify_one();
      wake = runnable && WakeOne();
      submission = nullptr;
    }
  }
  if (submission != nullptr) Deliver({std::move(submission)});
  if (wake) wake_();
}

// No transaction in flight uses its keys, and no earlier application waits for them.
bool Combiner::IsFree(const Item& item) const noexcept {
  return std::ranges::all_of(item.charges, [this](const ItemCharge& charge) {
    return !busy_[charge.stripe] && queued_[charge.stripe] == 0;
  });
}

bool Combiner::MayTake(const Item& item) const noexcept {
  return std::ranges::all_of(item.charges, [this](const ItemCharge& charge) {
    return !busy_[charge.stripe] && skipped_[charge.stripe] != scan_;
  });
}

Combiner::Taken Combiner::TakeItems() {
  Taken taken;
  ++scan_;
  std::size_t keys = 0;
  std::size_t kept = 0;
  std::size_t next = 0;
  for (; next < queue_.size(); ++next) {
    Waiting& waiting = queue_[next];
    const std::span<ItemCharge> charges = waiting.item->charges;
    if (MayTake(*waiting.item)) {
      const bool first = taken.items.empty();
      if (!first && (taken.items.size() >= options_.max_applications ||
                     keys + charges.size() > options_.max_keys)) {
        taken.all = false;
        break;
      }
      keys += charges.size();
      for (const ItemCharge& charge : charges) --queued_[charge.stripe];
      taken.items.push_back(std::move(waiting));
    } else {
      for (const ItemCharge& charge : charges) skipped_[charge.stripe] = scan_;
      if (kept != next) queue_[kept] = std::move(waiting);
      ++kept;
    }
  }
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(kept),
               queue_.begin() + static_cast<std::ptrdiff_t>(next));
  for (const Waiting& waiting : taken.items) {
    for (const ItemCharge& charge : waiting.item->charges) busy_[charge.stripe] = true;
  }
  return taken;
}

std::unique_ptr<Batch> Combiner::Take() {
  Taken taken;
  bool wake = false;
  {
    const std::lock_guard hold(mutex_);
    taken = TakeItems();
    if (taken.items.empty()) {
      ++free_lanes_;
      return nullptr;
    }
    wake = !taken.all && WakeOne();
  }
  if (wake) wake_();
  return std::make_unique<Batch>(std::move(taken.items));
}

bool Combiner::WakeOne() {
  if (free_lanes_ == 0 || queue_.empty()) return false;
  --free_lanes_;
  return true;
}

void Combiner::Finish(std::unique_ptr<Batch> batch, Status status) {
  // A transaction carries many callers' applications, so what failed it (a missing table, a full
  // disk) is not the fault of any of them; errors of one row are set by Batch::Run.
  if (!status.ok() && FaultOf(status.error().code) == Fault::kQuestion) {
    status = Error{Code::kUnavailable, status.error().message};
  }
  Submissions complete;
  std::shared_ptr<Submission> releases;
  {
    const std::lock_guard hold(mutex_);
    if (status.ok()) releases = ReleasesOf(*batch);
    for (const Waiting& waiting : batch->items()) {
      Item& item = *waiting.item;
      for (const ItemCharge& charge : item.charges) busy_[charge.stripe] = false;
      if (item.abandoned) continue;
      if (!status.ok()) {
        item.status = status;
        item.applied = false;
      }
      Answer(waiting.owner, item, complete);
    }
    DropAnswered();
  }
  Deliver(std::move(complete));
  if (releases != nullptr) Submit(std::move(releases));
}

/// Permits in flight that were granted after their callers had been answered with an error: no one
/// knows their names, and they would be unavailable until their leases end.
std::shared_ptr<Submission> Combiner::ReleasesOf(const Batch& batch) const {
  std::vector<Application> releases;
  std::deque<Charge> charges;
  for (const Waiting& waiting : batch.items()) {
    const Item& item = *waiting.item;
    const bool grants = item.op == Op::kCharge || item.op == Op::kLease;
    if (!item.abandoned || !grants || !item.status.ok() || !item.applied) continue;
    for (std::size_t i = 0; i < item.charges.size(); ++i) {
      if (item.decisions[i].lease == 0) continue;
      charges.push_back({item.charges[i].key, 0, &item.charges[i].quota});
      Application& release = releases.emplace_back();
      release.op = Op::kRelease;
      release.lease = item.decisions[i].lease;
      release.charges = {&charges.back(), 1};
    }
  }
  if (releases.empty()) return nullptr;
  return std::make_shared<Submission>(releases, nullptr, hash_);
}

void Combiner::Answer(const std::shared_ptr<Submission>& owner, Item& item, Submissions& complete) {
  item.answered = true;
  if (--owner->unanswered == 0) complete.push_back(owner);
}

void Combiner::DropAnswered() {
  while (!pending_.empty() && pending_.front()->unanswered == 0) pending_.pop_front();
}

void Combiner::Abandon(Submission& submission) {
  for (Item& item : submission.items()) item.abandoned = item.abandoned || !item.answered;
  submission.unanswered = 0;
}

Combiner::Submissions Combiner::Expired() {
  Submissions expired;
  const Clock::time_point now = Clock::now();
  while (!pending_.empty()) {
    std::shared_ptr<Submission>& front = pending_.front();
    if (front->unanswered > 0) {
      if (front->deadline > now) break;
      Abandon(*front);
      expired.push_back(front);
    }
    pending_.pop_front();
  }
  // The queue is in the same order, so expired applications are at its head.
  while (!queue_.empty() && queue_.front().item->abandoned) {
    for (const ItemCharge& charge : queue_.front().item->charges) --queued_[charge.stripe];
    queue_.pop_front();
  }
  return expired;
}

/// What is submitted while nothing is pending is due no sooner than a timeout from now: until then
/// this thread need not be woken, which would cost the submitter more than the rest of its work.
/// Only after a timeout without any work does it wait to be woken.
void Combiner::AwaitDeadline(std::unique_lock<std::mutex>& hold) {
  // A copy: waiting releases the lock, and the front may be removed meanwhile.
  const Clock::time_point deadline =
      pending_.empty() ? Clock::now() + options_.timeout : pending_.front()->deadline;
  quiet_ = pending_.empty();
  deadlines_changed_.wait_until(hold, deadline);
  if (!quiet_ || stopped_ || Clock::now() < deadline) return;
  dozing_ = true;
  deadlines_changed_.wait(hold, [this] { return stopped_ || !quiet_; });
  dozing_ = false;
}

void Combiner::WatchDeadlines() {
  std::unique_lock hold(mutex_);
  while (!stopped_) {
    AwaitDeadline(hold);
    Submissions expired = Expired();
    if (expired.empty()) continue;
    // Removed applications may have blocked others.
    const bool wake = WakeOne();
    hold.unlock();
    Deliver(std::move(expired));
    if (wake) wake_();
    hold.lock();
  }
}

void Combiner::Stop(const Error& error) {
  Submissions complete;
  {
    const std::lock_guard hold(mutex_);
    if (!stopped_) stop_error_ = error;
    stopped_ = true;
    for (const Waiting& waiting : queue_) {
      Item& item = *waiting.item;
      if (item.abandoned) continue;
      item.status = error;
      item.applied = false;
      Answer(waiting.owner, item, complete);
    }
    queue_.clear();
    DropAnswered();
    deadlines_changed_.notify_all();
  }
  Deliver(std::move(complete));
}

void Combiner::Deliver(Submissions complete) {
  for (std::shared_ptr<Submission>& submission : complete) {
    if (submission->origin == nullptr) continue;  // the answers are no longer wanted
    Origin& origin = *submission->origin;
    origin.Return(std::move(submission));
  }
}

}  // namespace weir::store::sql
