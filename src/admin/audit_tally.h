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
/// claims. A caller's first of a kind becomes an entry within a second; those that follow become
/// one entry a minute with a count and the first target. So no caller can flood the log, from which
/// the oldest entries are deleted, and changes made by people stay in it for long.
///
/// Counts that the log rejected are added again and written a minute later. Those that it may have
/// accepted are not, so that none is logged twice: the service's log has who, what and how often.
///
/// Thread-safe.
class AuditTally {
 public:
  /// `audit` must outlive this, and be closed before this is destroyed, since it calls back.
  explicit AuditTally(policy::AuditLog& audit) : audit_(audit) {}

  /// Beyond kCallers pairs of caller and action, others are counted together under "others".
  static constexpr std::size_t kCallers = 256;
  void Note(std::string who, std::string_view action, std::string_view target, std::size_t count);

  /// Writes the entries that are due. Called about once a second.
  void Flush();
  /// Writes all entries, at shutdown: those that cannot be written then go to the service's log.
  void FlushAll();

 private:
  struct Noted {
    std::string target;
    std::uint64_t count = 0;
    int wait = 0;  ///< flushes until it is written
  };
  using Key = std::pair<std::string, std::string>;  // who and action

  /// The contents of one entry to write.
  struct Due {
    Key key;
    std::string target;
    std::uint64_t count = 0;
  };

  static Due Take(const Key& key, Noted& noted);
  void Add(Key key, std::string_view target, std::uint64_t count);
  void Write(std::vector<Due> all);
  void OnFailed(const Due& due, const Error& why);

  policy::AuditLog& audit_;
  std::mutex mutex_;
  std::map<Key, Noted> noted_;
  bool ended_ = false;
};

}  // namespace weir::admin
