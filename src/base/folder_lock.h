#pragma once

#include <chrono>
#include <string>

#include "weir/result.h"

namespace weir {

/// Exclusive use of a folder: two processes that save the same limits and serve the same database
/// would each grant the whole limit. It ends with the object, and with the process, however that
/// ends.
///
/// Not thread-safe, and needs not be: it is held, not used.
class FolderLock {
 public:
  /// Takes the file `name` in the folder: programs that keep different files there have locks of
  /// their own. kUnavailable, with the other's process number, if another still has it after
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
