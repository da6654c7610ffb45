#include "store/memory/snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"

namespace weir::store::memory {
namespace {

Status Sync(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return FromErrno(path, "open");
  const bool synced = ::fsync(fd) == 0;
  Status status;
  if (!synced) status = FromErrno(path, "fsync");
  ::close(fd);
  return status;
}

Status WriteFile(const Engine& engine, const std::string& path) {
  // An old temporary file may have another mode or be a link: begin with a new one.
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return FromErrno(path, "create");
  ::close(fd);
  std::ofstream file(path, std::ios::binary);
  if (Status saved = engine.Save(file); !saved.ok()) return saved;
  file.close();
  if (!file) return FromErrno(path, "write");
  return Sync(path, O_RDONLY);
}

}  // namespace

Status SaveSnapshot(const Engine& engine, const std::string& path) {
  const std::string temporary = path + ".tmp";
  Status written = WriteFile(engine, temporary);
  if (written.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    written = FromErrno(path, "rename");
  }
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return Sync(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
}

namespace {

Status Load(Engine& engine, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return Error{Code::kNotFound, path + ": no snapshot"};
    return FromErrno(path, "open");
  }
  Status loaded = engine.Load(file);
  if (loaded.ok()) return {};
  return Error{loaded.error().code, path + ": " + loaded.error().message};
}

}  // namespace

Status LoadSnapshot(Engine& engine, const std::string& path) {
  Status loaded = Load(engine, path);
  if (loaded.ok() || loaded.error().code == Code::kNotFound) return loaded;
  const std::string kept = path + ".unreadable";
  if (std::rename(path.c_str(), kept.c_str()) != 0) return loaded;
  return Error{loaded.error().code, loaded.error().message + "; kept as " + kept};
}

SnapshotKeeper::SnapshotKeeper(const Engine& engine, Options options)
    : engine_(engine), options_(std::move(options)) {
  if (options_.interval.count() > 0 || options_.journal != nullptr) {
    thread_ = std::thread([this] { Loop(); });
  }
}

SnapshotKeeper::~SnapshotKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
  Save();
}

void SnapshotKeeper::Loop() {
  using std::chrono::steady_clock;
  constexpr std::chrono::seconds kLook{1};
  const auto next = [this] {
    const bool never = options_.interval.count() == 0;
    return never ? steady_clock::time_point::max() : steady_clock::now() + options_.interval;
  };
  auto due = next();
  std::unique_lock lock(mutex_);
  while (!stopping_.wait_until(lock, std::min(due, steady_clock::now() + kLook),
                               [this] { return stop_; })) {
    if (steady_clock::now() < due && !Overgrown()) continue;
    lock.unlock();
    Save();
    due = next();
    lock.lock();
  }
}

bool SnapshotKeeper::Overgrown() const {
  return options_.journal != nullptr && options_.journal->size() > options_.most_journal;
}

void SnapshotKeeper::Save() {
  Result<std::uint64_t> begun = std::uint64_t{0};
  if (options_.journal != nullptr) begun = options_.journal->Rotate();
  const Status saved = SaveSnapshot(engine_, options_.path);
  if (saved.ok() && options_.journal != nullptr && begun.ok()) options_.journal->DropBefore(*begun);
  if (options_.on_saved) options_.on_saved(saved);
}

}  // namespace weir::store::memory
