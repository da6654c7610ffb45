#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace weir::test {

struct SpawnOptions {
  std::vector<std::string> env = {};  ///< "NAME=value", added to this process's environment.
  std::string directory = {};         ///< Where the program starts; empty: here.
  /// System user to run as if we are root (database servers refuse root); empty: the current one.
  std::string user = {};
};

/// A program started by a test. It never outlives the test: the destructor kills it and the rest
/// of its process group, and the kernel does so if the test itself is killed. Its output is
/// captured as it arrives, so the program never blocks on a full pipe. Standard input is empty.
///
/// Thread-safe, except that the kernel ties the program's life to the thread that made this object:
/// make it on a thread that lives as long, e.g. the test's own. Throws std::runtime_error if the
/// program cannot be started; an unknown program exits with 127.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> argv, const SpawnOptions& options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const noexcept { return pid_; }
  bool running() const;

  /// The first line of standard output that contains `text`, or nothing if none appears in time or
  /// before the program ends. WaitForError looks at standard error.
  std::optional<std::string> WaitForLine(std::string_view text,
                                         std::chrono::milliseconds timeout = kPatience);
  std::optional<std::string> WaitForError(std::string_view text,
                                          std::chrono::milliseconds timeout = kPatience);

  /// Sends a signal if the program still runs. After SIGSTOP, all its threads are stopped.
  void Signal(int signal);

  /// The exit code (128 + n if signal n ended it), or nothing if it still runs after `timeout`.
  std::optional<int> Wait(std::chrono::milliseconds timeout = kPatience);

  /// Sends SIGTERM, and SIGKILL if that does not end it within `grace`. Returns the exit code.
  int Terminate(std::chrono::milliseconds grace = kPatience);
  /// Sends SIGKILL to the program and its process group. Returns the exit code.
  int Kill();

  /// The output so far.
  std::string output() const;
  std::string error_output() const;

 private:
  static constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(120);

  std::optional<std::string> WaitFor(const std::string& stream, std::string_view text,
                                     std::chrono::milliseconds timeout);
  void Watch(int out, int err, int pidfd);
  void Reap();

  pid_t pid_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  std::string error_output_;
  std::optional<int> exit_code_;
  std::thread watcher_;
};

/// Runs a program to its end and returns its result; kills it after `timeout`.
struct RunResult {
  int exit_code = 0;
  std::string output;
  std::string error_output;
};
RunResult RunProgram(std::vector<std::string> argv, const SpawnOptions& options = {},
                     std::chrono::milliseconds timeout = std::chrono::seconds(120));

}  // namespace weir::test
