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
/// What the log did not take is counted again and written a minute later. What it may have taken is
/// not, so that nothing is in it twice: the service's log has who, what and how often.
///
/// Thread-safe.
class AuditTally {
 public:
  /// `audit` must outlive this, and be closed before this goes: its answers come here.
  explicit AuditTally(policy::AuditLog& audit) : audit_(audit) {}

  /// Beyond kCallers callers within a minute the rest goes together under "others".
  static constexpr std::size_t kCallers = 256;
  void Note(std::string who, std::string_view action, std::string_view target, std::size_t count);

  /// Writes the entries whose time has come. Called about once a second.
  void Flush();
  /// Writes all of them, at the end: what is not written then goes to the service's log.
  void FlushAll();

 private:
  struct Noted {
    std::string target;
    std::uint64_t count = 0;
    int wait = 0;  ///< so many flushes until it is written
  };
  using Key = std::pair<std::string, std::string>;  // who and action

  /// What is to be written: an entry's worth of a kind.
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
