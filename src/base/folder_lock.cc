#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/lasting.h"

namespace weir {
namespace {

std::string ReadHolder(int fd) {
  std::array<char, 24> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  const std::string_view number(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(number.substr(0, number.find_first_not_of("0123456789")));
}

Error Because(const std::string& path) {
  const std::error_code error(errno, std::generic_category());
  return {CodeOfOpening(error), path + ": " + error.message()};
}

/// False with errno if it could not be locked. There is no flock with a timeout.
bool LockWithin(int fd, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

Result<FolderLock> FolderLock::Take(const std::string& folder, const std::string& name,
                                    std::chrono::milliseconds patience) {
  const std::string path = folder + "/" + name;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Because(path);
  FolderLock lock(fd);
  if (!LockWithin(fd, patience)) {
    if (errno != EWOULDBLOCK) return Because(path);
    return Error{Code::kUnavailable, "data: " + folder + " is in use by process " + ReadHolder(fd) +
                                         "; stop it, or use another folder (--data)"};
  }
  // For people only: the lock holds without it, and a full disk is no reason to fail.
  const std::string number = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) == 0) {
    [[maybe_unused]] const auto written = ::pwrite(fd, number.data(), number.size(), 0);
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace weir
