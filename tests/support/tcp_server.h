#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "support/tcp_connection.h"

namespace weir::test {

/// A server scripted by a test, on a port of the loopback interface, a free one unless it is given:
/// `serve` runs for every connection, on a separate thread. When it returns or throws, the
/// connection is closed. The destructor closes what is still open and joins all threads.
///
/// Thread-safe.
class TcpServer {
 public:
  using Serve = std::function<void(TcpConnection& connection)>;

  explicit TcpServer(Serve serve, std::uint16_t port = 0);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  /// Accepts no more connections: they are refused. Those that are open continue.
  void StopListening() noexcept;

  std::uint16_t port() const noexcept { return port_; }
  /// Connections accepted so far, and those of them that have not ended.
  int accepted() const noexcept { return accepted_; }
  int open() const noexcept { return open_; }

 private:
  void Run();
  void ServeOne(int fd);

  Serve serve_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::atomic<int> open_ = 0;
  std::mutex mutex_;
  std::vector<int> fds_;  // of connections being served
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace weir::test
