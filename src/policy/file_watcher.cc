#include "policy/file_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE |
                                  IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

std::string FolderOf(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

Result<std::unique_ptr<FileWatcher>> FileWatcher::Start(Options options) {
  const int notify_fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  const int wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (notify_fd < 0 || wake_fd < 0) {
    const std::string why = std::error_code(errno, std::generic_category()).message();
    if (notify_fd >= 0) ::close(notify_fd);
    if (wake_fd >= 0) ::close(wake_fd);
    return Error{Code::kResourceExhausted, "cannot watch policy files: " + why};
  }
  std::unique_ptr<FileWatcher> watcher(new FileWatcher(std::move(options), notify_fd, wake_fd));
  watcher->WatchFolders();
  watcher->stamps_ = Look(watcher->options_.paths);
  const auto& read = watcher->options_.read;
  if (read && *read != watcher->stamps_) watcher->Trigger();
  watcher->thread_ = std::thread([raw = watcher.get()] { raw->Loop(); });
  return watcher;
}

FileWatcher::FileWatcher(Options options, int notify_fd, int wake_fd)
    : options_(std::move(options)), notify_fd_(notify_fd), wake_fd_(wake_fd) {}

FileWatcher::~FileWatcher() {
  stop_.store(true);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_fd_, &one, sizeof one));
  if (thread_.joinable()) thread_.join();
  ::close(notify_fd_);
  ::close(wake_fd_);
}

void FileWatcher::Trigger() noexcept {
  forced_.store(true);
  const std::uint64_t one = 1;
  // Fails only if the counter is full, and then it is already signalled.
  static_cast<void>(!::write(wake_fd_, &one, sizeof one));
}

// Both the folder that names the file and the one that really contains it.
void FileWatcher::WatchFolders() {
  for (const int watch : watches_) ::inotify_rm_watch(notify_fd_, watch);
  watches_.clear();
  std::set<std::string> folders;
  for (const std::string& path : options_.paths) {
    folders.insert(FolderOf(path));
    std::error_code trouble;
    if (std::filesystem::is_directory(path, trouble)) folders.insert(path);
    const std::filesystem::path real = std::filesystem::canonical(path, trouble);
    if (!trouble) folders.insert(FolderOf(real));
  }
  for (const std::string& folder : folders) {
    // A folder that does not exist (yet) is found by polling.
    const int watch = ::inotify_add_watch(notify_fd_, folder.c_str(), kEvents);
    if (watch >= 0) watches_.push_back(watch);
  }
}

void FileWatcher::Drain() const {
  std::array<char, 4096> bytes;
  while (::read(notify_fd_, bytes.data(), bytes.size()) > 0) {
  }
  std::uint64_t count = 0;
  static_cast<void>(!::read(wake_fd_, &count, sizeof count));
}

std::vector<FileWatcher::Stamp> FileWatcher::Look(const std::vector<std::string>& paths) {
  std::vector<Stamp> stamps;
  std::vector<yaml::Problem> ignored;  // the code that reads the files reports them
  for (const std::string& path : PolicyFiles(paths, ignored)) {
    Stamp stamp;
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) {
      stamp.device = info.st_dev;
      stamp.inode = info.st_ino;
      stamp.size = info.st_size;
      stamp.modified = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    }
    stamps.push_back(stamp);
  }
  return stamps;
}

bool FileWatcher::Wait(std::chrono::milliseconds patience) const {
  std::array<pollfd, 2> fds{{{notify_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}}};
  const bool told = ::poll(fds.data(), fds.size(), static_cast<int>(patience.count())) > 0;
  if (told) Drain();
  return told;
}

// A save is several changes. Other changes in the folder do not matter.
std::vector<FileWatcher::Stamp> FileWatcher::LookWhenQuiet() const {
  using std::chrono::steady_clock;
  std::vector<Stamp> stamps = Look(options_.paths);
  auto until = steady_clock::now() + options_.settle;
  while (!stop_.load() && steady_clock::now() < until) {
    Wait(std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()));
    std::vector<Stamp> next = Look(options_.paths);
    if (next == stamps) continue;
    stamps = std::move(next);
    until = steady_clock::now() + options_.settle;
  }
  return stamps;
}

void FileWatcher::Loop() {
  while (!stop_.load()) {
    if (!Wait(options_.interval) && Look(options_.paths) == stamps_) continue;
    const std::vector<Stamp> now = LookWhenQuiet();
    if (stop_.load()) return;
    const bool forced = forced_.exchange(false);
    if (now == stamps_ && !forced) continue;
    // Stamps are taken before the files are read: a change in between is noticed next time.
    stamps_ = now;
    WatchFolders();
    options_.on_change();
  }
}

}  // namespace weir::policy
