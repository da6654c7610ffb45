#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/child_process.h"
#include "support/temp_dir.h"

namespace weir::test {

struct RedisOptions {
  std::string password = {};
  /// Listens with TLS instead of plaintext, with a certificate of this authority. Must outlive it.
  Certificates* certificates = nullptr;
  /// Every answered write is in the append-only file, so Kill and Start lose nothing.
  bool durable = false;
  bool cluster = false;
  /// More settings of redis-server itself, e.g. {"--maxmemory", "1mb"}.
  std::vector<std::string> settings = {};
};

/// A private, real Redis for a test: empty, on a free loopback port, nothing on disk unless
/// `durable`. It ends with this object, and its files with it.
///
/// Throws std::runtime_error with the server's output if it does not start. As thread-safe as
/// ChildProcess; make it on the test's own thread.
class RedisServer {
 public:
  explicit RedisServer(RedisOptions options = {});
  ~RedisServer();

  /// redis://… or rediss://…, with the password and the authority if any.
  std::string url() const;
  std::uint16_t port() const noexcept { return port_; }
  /// The port on which the nodes of a cluster talk to each other. Redis would use port() + 10000,
  /// which may be in use by an outgoing connection.
  std::uint16_t bus_port() const noexcept { return bus_port_; }

  /// Runs a command with redis-cli and returns its raw output. Throws if it cannot be run.
  std::string Command(std::vector<std::string> words) const;

  /// SIGKILL: connections are cut, memory is lost.
  void Kill();
  /// After Kill, on the same port with the same files.
  void Start();
  /// Suspends it: connections hang, as with a lost network.
  void Pause();
  void Resume();

 private:
  RedisOptions options_;
  TempDir dir_;
  std::uint16_t port_;
  std::uint16_t bus_port_;
  Certificates::Pair pair_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace weir::test
