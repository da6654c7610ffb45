#include "support/child_process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "support/wait.h"

// One thread per child reads both pipes and is the only one that reaps. Until it has reaped, the
// pid cannot be reused, so signals sent under the mutex never reach another process.

namespace weir::test {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::generic_category().message(errno));
}

// Whether every thread of the process is stopped, or the process does not exist.
bool AllStopped(pid_t pid) {
  std::error_code gone;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::ifstream file(task.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat.size()) continue;
    if (std::string_view("TtZX").find(stat[name_end + 2]) == std::string_view::npos) return false;
  }
  return true;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& extra) {
  std::vector<std::string> all = extra;  // getenv returns the first match
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=') + 1));
    bool replaced = false;
    for (const std::string& ours : extra) replaced = replaced || ours.starts_with(name);
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  bool change = false;
};

User Lookup(const std::string& name) {
  if (name.empty() || geteuid() != 0) return {};
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) throw std::runtime_error("no system user " + name);
  return {found->pw_uid, found->pw_gid, true};
}

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) Fail("pipe");
  return {ends[0], ends[1]};
}

// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void Exec(char** argv, char** env, const char* directory, const User& user, int out,
                       int err) {
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
  if (*directory != '\0' && chdir(directory) != 0) _exit(126);
  if (user.change &&
      (setgroups(0, nullptr) != 0 || setgid(user.gid) != 0 || setuid(user.uid) != 0)) {
    _exit(126);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // after setuid, which clears it
  execvpe(argv[0], argv, env);
  _exit(127);
}

// Appends what can be read; false at the end of the stream.
bool ReadInto(int fd, std::string& text, std::mutex& mutex) {
  std::array<char, 8192> buffer{};
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      const std::lock_guard lock(mutex);
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> argv, const SpawnOptions& options) {
  if (argv.empty()) throw std::runtime_error("no program named");
  const User user = Lookup(options.user);
  std::vector<std::string> environment = Environment(options.env);
  const std::vector<char*> arguments = Pointers(argv);
  const std::vector<char*> variables = Pointers(environment);
  const Pipe out = MakePipe();
  const Pipe err = MakePipe();
  pid_ = fork();
  if (pid_ < 0) Fail("fork");
  if (pid_ == 0) {
    Exec(const_cast<char**>(arguments.data()), const_cast<char**>(variables.data()),
         options.directory.c_str(), user, out.write, err.write);
  }
  setpgid(pid_, pid_);  // also here: whichever of us runs first, a Kill right away finds the group
  close(out.write);
  close(err.write);
  fcntl(out.read, F_SETFL, O_NONBLOCK);
  fcntl(err.read, F_SETFL, O_NONBLOCK);
  const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd < 0) Fail("pidfd_open");
  watcher_ = std::thread([this, out, err, pidfd] { Watch(out.read, err.read, pidfd); });
}

ChildProcess::~ChildProcess() {
  Kill();
  watcher_.join();
}

void ChildProcess::Watch(int out, int err, int pidfd) {
  std::array<pollfd, 3> watched{{{out, POLLIN, 0}, {err, POLLIN, 0}, {pidfd, POLLIN, 0}}};
  bool ended = false;
  while (!ended) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    ended = watched[2].revents != 0;  // read before the output, so that nothing written is missed
    if (watched[0].fd >= 0 && !ReadInto(out, output_, mutex_)) watched[0].fd = -1;
    if (watched[1].fd >= 0 && !ReadInto(err, error_output_, mutex_)) watched[1].fd = -1;
    if (ended) Reap();
    changed_.notify_all();
  }
  close(out);
  close(err);
  close(pidfd);
}

void ChildProcess::Reap() {
  const std::lock_guard lock(mutex_);
  kill(-pid_, SIGKILL);  // its remaining children; the group id stays ours until waitpid
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ChildProcess::running() const {
  const std::lock_guard lock(mutex_);
  return !exit_code_.has_value();
}

std::optional<std::string> ChildProcess::WaitForLine(std::string_view text,
                                                     std::chrono::milliseconds timeout) {
  return WaitFor(output_, text, timeout);
}

std::optional<std::string> ChildProcess::WaitForError(std::string_view text,
                                                      std::chrono::milliseconds timeout) {
  return WaitFor(error_output_, text, timeout);
}

std::optional<std::string> ChildProcess::WaitFor(const std::string& stream, std::string_view text,
                                                 std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::size_t start = 0;  // of the current line
  while (true) {
    for (std::size_t end = 0; (end = stream.find('\n', start)) != std::string::npos;
         start = end + 1) {
      const std::string_view line = std::string_view(stream).substr(start, end - start);
      if (line.find(text) != std::string_view::npos) return std::string(line);
    }
    if (exit_code_.has_value()) return std::nullopt;
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return std::nullopt;
  }
}

void ChildProcess::Signal(int signal) {
  {
    const std::lock_guard lock(mutex_);
    if (exit_code_.has_value()) return;
    kill(pid_, signal);
  }
  // A thread that runs on another processor continues for a moment.
  if (signal == SIGSTOP && !WaitUntil([this] { return AllStopped(pid_); })) {
    throw std::runtime_error("a child does not stop");
  }
}

std::optional<int> ChildProcess::Wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return exit_code_.has_value(); });
  return exit_code_;
}

int ChildProcess::Terminate(std::chrono::milliseconds grace) {
  Signal(SIGTERM);
  const std::optional<int> code = Wait(grace);
  return code.has_value() ? *code : Kill();
}

int ChildProcess::Kill() {
  std::unique_lock lock(mutex_);
  if (!exit_code_.has_value() && kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);
  changed_.wait(lock, [this] { return exit_code_.has_value(); });
  return *exit_code_;
}

std::string ChildProcess::output() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

std::string ChildProcess::error_output() const {
  const std::lock_guard lock(mutex_);
  return error_output_;
}

RunResult RunProgram(std::vector<std::string> argv, const SpawnOptions& options,
                     std::chrono::milliseconds timeout) {
  ChildProcess child(std::move(argv), options);
  const std::optional<int> code = child.Wait(timeout);
  const int exit_code = code.has_value() ? *code : child.Kill();
  return {exit_code, child.output(), child.error_output()};
}

}  // namespace weir::test
