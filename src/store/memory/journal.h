#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/engine.h"
#include "weir/result.h"

namespace weir::store::memory {

/// Records the changes in an engine between its snapshots, on its own thread: changes since the
/// last write go out together, a record per key however often it was charged. The files are
/// `path`.1, `path`.2, … (docs/design/snapshot-format.md); each snapshot begins a new one and
/// deletes the older ones.
///
/// Thread-safe.
class Journal {
 public:
  struct Options {
    std::string path;
    bool sync = false;  ///< fsync each write
    std::chrono::milliseconds interval{10};
    /// Bytes kept while the disk accepts nothing; beyond, changes are dropped and reported.
    std::size_t most_waiting = std::size_t{64} << 20;
    /// Called when writing starts to fail and when it works again, on the journal's thread.
    std::function<void(const Status&)> on_status = {};
  };
  struct Replayed {
    std::size_t batches = 0;
    std::uint64_t cut = 0;  ///< bytes at the ends of files that are not whole batches
  };
  using Written = std::function<void(const Status&)>;

  /// Loads what the files hold, oldest first. A file that ends in half a batch, as a crash leaves
  /// it, is read up to there. A file that cannot be read is an error, and the others are still
  /// loaded.
  static Result<Replayed> Replay(Engine& engine, const std::string& path);
  /// Deletes all files.
  static Status Drop(const std::string& path);

  /// Begins a new file; failing to is an error with `sync` only. A folder that cannot be read is
  /// always an error. `engine` must track its changes and outlive the journal.
  static Result<std::unique_ptr<Journal>> Open(Engine& engine, Options options);
  /// Writes what is left. Every Written has run when it returns.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// How often changes were dropped. Read it before making a change that will be awaited.
  std::uint64_t drops() const noexcept { return drops_; }
  /// Calls `done` on the journal's thread when every change made since drops() was `drops`, and
  /// before this call, is written (and on disk, with `sync`), or could not be. Never blocks.
  void Await(std::uint64_t drops, Written done);
  /// As above, for changes of which none has been dropped yet.
  void Await(Written done) { Await(drops(), std::move(done)); }

  /// Begins a new file, and returns its number for DropBefore. Everything in older files is
  /// contained in a snapshot that begins afterwards.
  Result<std::uint64_t> Rotate();
  void DropBefore(std::uint64_t number);
  /// Bytes of the file that is being written; the largest value if changes were dropped that no
  /// snapshot contains.
  std::int64_t size();

 private:
  struct Waiting {
    std::uint64_t drops = 0;
    Written done;
  };

  Journal(Engine& engine, Options options) : engine_(engine), options_(std::move(options)) {}
  Status OpenNext();
  void Loop();
  void Answer(const std::vector<Waiting>& waiting, const Status& written);
  Status WriteChanges();
  void DropChanges();
  void Tell(const Status& status);

  Engine& engine_;
  const Options options_;

  std::mutex file_mutex_;  // guards the following members
  int fd_ = -1;
  std::uint64_t number_ = 0;
  std::int64_t good_ = 0;      // bytes of the file that are whole batches
  std::string frame_;          // room for a header, and changes that are not written yet
  std::uint64_t lacking_ = 0;  // the last file that lacks changes; 0: none does
  std::atomic<std::uint64_t> drops_{0};

  std::mutex mutex_;  // guards the following members
  std::condition_variable wake_;
  std::vector<Waiting> waiting_;
  bool stop_ = false;

  bool failing_ = false;  // used by the thread only
  std::thread thread_;
};

}  // namespace weir::store::memory
