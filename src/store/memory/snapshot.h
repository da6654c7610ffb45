#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "store/memory/journal.h"
#include "weir/engine.h"
#include "weir/result.h"

namespace weir::store::memory {

/// Writes the engine's state to `path` so that a crash leaves the old file or the new one, never a
/// partial one: a temporary file beside it (mode 0600), fsync, rename, fsync of the folder.
Status SaveSnapshot(const Engine& engine, const std::string& path);

/// Replaces the engine's state with the file's. kNotFound if there is no file; on any other error
/// (a damaged or foreign file) the engine is empty, and the file is renamed to `path`.unreadable,
/// so that the next snapshot does not overwrite it.
Status LoadSnapshot(Engine& engine, const std::string& path);

/// Saves an engine at an interval on its own thread, whenever its journal has grown large, and once
/// more on destruction.
///
/// Thread-safe.
class SnapshotKeeper {
 public:
  struct Options {
    std::string path;
    std::chrono::milliseconds interval{5000};  ///< zero: only at the end
    /// Begins a new file before each snapshot and deletes the old ones after it. Must outlive this.
    Journal* journal = nullptr;
    std::int64_t most_journal = std::int64_t{1} << 30;  ///< bytes, checked every second
    /// Called with each result, on the keeper's (or destroying) thread: for log and metrics.
    std::function<void(const Status&)> on_saved;
  };

  SnapshotKeeper(const Engine& engine, Options options);
  ~SnapshotKeeper();
  SnapshotKeeper(const SnapshotKeeper&) = delete;
  SnapshotKeeper& operator=(const SnapshotKeeper&) = delete;

 private:
  void Loop();
  bool Overgrown() const;
  void Save();

  const Engine& engine_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace weir::store::memory
