#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/temp_dir.h"

namespace weir::test {

/// What a MariaDB and a MySQL for a test have in common: a server on a free loopback port and a
/// unix socket, flushing at every commit, user `weir` with all privileges and no password,
/// database `weir`. It ends with this object, and its files are removed with it.
///
/// Throws std::runtime_error with the server's output if it does not start. As thread-safe as
/// ChildProcess; make it on the test's own thread.
class MysqlFamilyServer {
 public:
  virtual ~MysqlFamilyServer();
  MysqlFamilyServer(const MysqlFamilyServer&) = delete;
  MysqlFamilyServer& operator=(const MysqlFamilyServer&) = delete;

  /// mysql://… over the unix socket (faster) or over TCP.
  std::string url(const std::string& database = "weir") const;
  std::string tcp_url(const std::string& database = "weir") const;
  std::uint16_t port() const noexcept { return port_; }

  /// Creates an empty database and returns its url().
  std::string CreateDatabase(const std::string& name);

  /// Runs SQL with the server's own client and returns its output: columns separated by tabs, rows
  /// by newlines.
  std::string Query(const std::string& sql, const std::string& database = "weir");

  /// What the server has logged since its last Start.
  std::string log() const { return process_ ? process_->error_output() : ""; }

  /// Clean shutdown: everything is written.
  void Stop();
  /// SIGKILL, as on a power failure: recovery on the next Start.
  void Crash();
  /// After Stop or Crash, on the same port with the same files.
  void Start();
  /// Suspends the server: connections hang, as with a lost network.
  void Pause();
  void Resume();

 protected:
  struct Program {
    std::vector<std::string> argv;  ///< the command up to the options
    std::string user;               ///< the system user to run as; empty: the current one
    std::string files;              ///< the files of a new, empty database, to be copied
  };
  /// `settings` like "max_connections=300" are added to the defaults.
  MysqlFamilyServer(Program program, std::vector<std::string> settings);

 private:
  std::string socket() const { return (dir_ / "socket").string(); }

  TempDir dir_;
  std::uint16_t port_;
  const Program program_;
  const std::vector<std::string> settings_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace weir::test
