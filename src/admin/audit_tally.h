#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "admin/audit_log.h"

namespace weir::admin {

/// Records operations that are too frequent for an audit entry each: sends, refunds, releases. All
/// operations of one kind by one caller within a second become one entry with a count and the first
/// target, so that nobody can flood the log.
///
/// Thread-safe.
class AuditTally {
 public:
  /// `audit` must outlive this.
  explicit AuditTally(policy::AuditLog& audit) : audit_(audit) {}

  /// Beyond kCallers callers within a second the rest goes together under "others".
  static constexpr std::size_t kCallers = 256;
  void Note(std::string who, std::string_view action, std::string_view target, std::size_t count);

  /// Writes the entries. Called about once a second, and at the end.
  void Flush();

 private:
  struct Noted {
    std::string target;
    std::uint64_t count = 0;
  };

  policy::AuditLog& audit_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Noted> noted_;  // by who and action
};

}  // namespace weir::admin
