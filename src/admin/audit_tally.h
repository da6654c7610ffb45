#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/audit_log.h"

namespace weir::admin {

/// Records operations that are too frequent for an audit entry each: sends, refunds, releases,
/// claims. The first of a kind by a caller is an entry within a second; those that follow become
/// one entry a minute with a count and the first target. So nobody can flood the log, from which
/// the oldest entries are deleted: what people changed stays in it for long.
///
/// Thread-safe.
class AuditTally {
 public:
  /// `audit` must outlive this.
  explicit AuditTally(policy::AuditLog& audit) : audit_(audit) {}

  /// Beyond kCallers callers within a minute the rest goes together under "others".
  static constexpr std::size_t kCallers = 256;
  void Note(std::string who, std::string_view action, std::string_view target, std::size_t count);

  /// Writes the entries whose time has come. Called about once a second.
  void Flush();
  /// Writes all of them, at the end.
  void FlushAll();

 private:
  struct Noted {
    std::string target;
    std::uint64_t count = 0;
    int wait = 0;  ///< so many flushes until it is written
  };
  using Key = std::pair<std::string, std::string>;  // who and action

  /// What is noted becomes an entry.
  static policy::AuditEntry Take(const Key& key, Noted& noted);
  void Write(std::vector<policy::AuditEntry> entries);

  policy::AuditLog& audit_;
  std::mutex mutex_;
  std::map<Key, Noted> noted_;
};

}  // namespace weir::admin
