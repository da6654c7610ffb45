#include "support/database_files.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "support/paths.h"
#include "support/temp_dir.h"

namespace weir::test {

namespace fs = std::filesystem;

namespace {

/// Released also when making the files fails: the next try must not wait for the failed one.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::runtime_error("cannot make " + path);
    flock(file_, LOCK_EX);
  }
  ~FileLock() { close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const int file_;
};

}  // namespace

void GiveTo(const std::string& user, const fs::path& path) {
  if (geteuid() != 0) return;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) throw std::runtime_error("no system user " + user);
  const auto give = [found](const fs::path& what) {
    if (lchown(what.c_str(), found->pw_uid, found->pw_gid) != 0) {
      throw std::runtime_error("cannot chown " + what.string());
    }
  };
  give(path);
  for (const auto& inside : fs::recursive_directory_iterator(path)) give(inside.path());
}

fs::path DatabaseTemplate(const std::string& name, const std::string& user,
                          const std::function<void(const fs::path& folder)>& make) {
  fs::path home = fs::path(BuildFolder()) / name;
  const FileLock lock(home.string() + ".lock");
  if (!fs::exists(home)) {
    const TempDir scratch;
    fs::create_directory(scratch / "tmp");
    GiveTo(user, scratch.path());
    const fs::path data = scratch / "data";
    make(data);
    const fs::path unfinished = home.string() + ".new";
    fs::remove_all(unfinished);
    fs::copy(data, unfinished, fs::copy_options::recursive);
    fs::rename(unfinished, home);
  }
  return home;
}

}  // namespace weir::test
