#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>

#include "admin/audit_log.h"
#include "weir/clock.h"

namespace weir::admin {

/// Keeps the audit log within its bounds, a few entries at a time.
///
/// Thread safety: call OnSecond from one thread.
class AuditTrimmer {
 public:
  struct Keep {
    std::size_t entries = 0;          ///< 0: any number
    std::chrono::nanoseconds age{0};  ///< 0: any age
  };

  /// `log` must outlive this.
  AuditTrimmer(policy::AuditLog& log, Keep keep) : log_(log), keep_(keep) {}

  /// Checks once a minute, and at every call while there is more to delete. Call it every second.
  void OnSecond(Nanos now);

 private:
  policy::AuditLog& log_;
  const Keep keep_;
  Nanos next_ = 0;
  // Outlives late answers.
  std::shared_ptr<std::atomic<bool>> more_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace weir::admin
