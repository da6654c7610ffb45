#pragma once

// What each algorithm is defined to do, written as slowly and plainly as possible: no packed state,
// no shortcuts, every grant is kept, and times are searched for instead of solved for.

#include <cstdint>
#include <memory>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// One key under one quota. Not thread-safe.
class Reference {
 public:
  static std::unique_ptr<Reference> For(const Quota& quota);

  explicit Reference(const Quota& quota) : quota_(quota) {}
  virtual ~Reference() = default;

  Decision Acquire(Nanos now, std::int64_t cost);
  Decision Overdraw(Nanos now, std::int64_t cost);
  Decision Refund(Nanos now, std::int64_t cost);
  /// Concurrency only.
  virtual bool Release(Nanos /*now*/, std::int64_t /*lease*/) { return false; }

 protected:
  const Quota& quota() const { return quota_; }

 private:
  /// Whole permits available at `now`; may be negative.
  virtual std::int64_t Available(Nanos now) const = 0;
  /// Requires Available(now) >= cost > 0. Returns the lease, if the algorithm has leases.
  virtual std::int64_t Charge(Nanos now, std::int64_t cost) = 0;
  /// Charges `cost` > 0, whether it is available or not, as far as the algorithm counts it.
  virtual void Owe(Nanos now, std::int64_t cost) = 0;
  virtual void GiveBack(Nanos now, std::int64_t cost) = 0;
  /// The smallest r >= 0 with Available(now + r) >= permits, if nothing else is charged until then.
  virtual std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const = 0;

  Decision Describe(Nanos now) const;

  Quota quota_;
};

}  // namespace weir::algorithm
