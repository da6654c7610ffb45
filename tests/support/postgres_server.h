#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/temp_dir.h"

namespace weir::test {

/// A private, real PostgreSQL for a test: empty, on a free loopback port and a unix socket, fsync
/// on, superuser `weir` without a password, database `postgres`. It ends with this object, and its
/// files with it. Starting takes about half a second (the files are copied from a template that the
/// first start leaves in the build directory). As root it runs as the system user `postgres`.
///
/// Throws std::runtime_error with the server's output if it does not start. As thread-safe as
/// ChildProcess; make it on the test's own thread.
class PostgresServer {
 public:
  /// `settings` like "max_connections=300" are added to the defaults.
  explicit PostgresServer(std::vector<std::string> settings = {});
  /// A streaming replica of `primary`, which takes no writes until Promote.
  explicit PostgresServer(const PostgresServer& primary);
  ~PostgresServer();

  /// postgres://… over the unix socket (faster) or over TCP.
  std::string url(const std::string& database = "postgres") const;
  std::string tcp_url(const std::string& database = "postgres") const;
  std::uint16_t port() const noexcept { return port_; }

  /// Creates an empty database and returns its url().
  std::string CreateDatabase(const std::string& name);

  /// Runs SQL with psql and returns its unaligned output (columns split by '|', rows by newline).
  std::string Query(const std::string& sql, const std::string& database = "postgres");

  /// What the server has logged since its last Start.
  std::string log() const { return process_ ? process_->error_output() : ""; }

  /// Requires a password for TCP connections from now on. Restarts the server.
  void RequirePasswords();

  /// Ends all other sessions immediately, with pg_terminate_backend. Returns how many there were.
  int TerminateBackends();

  /// Turns a replica into a primary.
  void Promote();

  /// Fast clean shutdown: sessions are ended, everything is written.
  void Stop();
  /// As on a power failure: no checkpoint, recovery on the next Start.
  void Crash();
  /// After Stop or Crash, on the same port with the same files.
  void Start();
  /// Suspends all its processes: connections hang, as with a lost network.
  void Pause();
  void Resume();

 private:
  void SignalAll(int signal);
  void End(int signal);

  TempDir dir_;
  std::uint16_t port_;
  std::vector<std::string> settings_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace weir::test
