#pragma once

#include <chrono>
#include <string>

#include "weir/result.h"

namespace weir {

/// Exclusive use of a folder: two processes that save the same limits and serve the same database
/// would each grant the whole limit. The lock ends with the object, and with the process, however
/// that ends.
///
/// Not thread-safe, which is no restriction: it is only held.
class FolderLock {
 public:
  /// Locks the file `name` in the folder; programs that keep different files there use different
  /// names. kUnavailable, with the holder's process id, if another process still holds it after
  /// `patience`: a process that was killed may take a moment to end.
  static Result<FolderLock> Take(const std::string& folder, const std::string& name = "lock",
                                 std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace weir
