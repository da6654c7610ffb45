#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/result.h"

namespace weir::policy {

/// Reports when files change: written in place, replaced by a rename (as editors do), or reached
/// through a symbolic link that now leads elsewhere (as Kubernetes does). It watches the folders,
/// not the files, and also polls the files at an interval, for file systems without
/// notifications.
///
/// Thread-safe.
class FileWatcher {
 public:
  /// Distinguishes one state of a file from another.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = -1;  ///< -1: does not exist
    std::int64_t modified = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  /// The files that `paths` name, as they are now.
  static std::vector<Stamp> Look(const std::vector<std::string>& paths);

  struct Options {
    std::vector<std::string> paths;  ///< files, or folders of policy files
    /// Called on the watcher's thread after a change has been quiet for `settle`.
    std::function<void()> on_change;
    std::chrono::milliseconds settle{50};
    std::chrono::milliseconds interval{5000};
    /// Taken before the files were read: changes since then are reported. nullopt: they are read
    /// later.
    std::optional<std::vector<Stamp>> read = {};
  };

  static Result<std::unique_ptr<FileWatcher>> Start(Options options);
  ~FileWatcher();
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;

  /// Calls on_change soon, whether or not something changed (for SIGHUP). Safe in a signal handler.
  void Trigger() noexcept;

 private:
  FileWatcher(Options options, int notify_fd, int wake_fd);
  void Loop();
  /// False: no notification arrived in that time.
  bool Wait(std::chrono::milliseconds patience) const;
  /// The files once they have stayed the same for `settle`.
  std::vector<Stamp> LookWhenQuiet() const;
  void WatchFolders();
  void Drain() const;

  const Options options_;
  const int notify_fd_;  // inotify
  const int wake_fd_;    // eventfd
  std::atomic<bool> stop_{false};
  std::atomic<bool> forced_{false};
  std::vector<int> watches_;
  std::vector<Stamp> stamps_;
  std::thread thread_;
};

}  // namespace weir::policy
