#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::test {

/// A blocking TCP connection for tests: any protocol, byte by byte if necessary. Every call fails
/// after the timeout. Errors throw std::runtime_error, which GoogleTest reports as a failure.
///
/// Not thread-safe: one connection, one thread.
class TcpConnection {
 public:
  static constexpr std::chrono::milliseconds kTimeout = std::chrono::seconds(60);

  explicit TcpConnection(std::uint16_t port, const std::string& host = "127.0.0.1",
                         std::chrono::milliseconds timeout = kTimeout);
  /// Takes over an accepted connection.
  static TcpConnection Adopt(int fd, std::chrono::milliseconds timeout = kTimeout);
  ~TcpConnection();
  TcpConnection(TcpConnection&& other) noexcept;
  TcpConnection& operator=(TcpConnection&& other) noexcept;

  /// Sends all bytes.
  void Send(std::string_view bytes);
  /// Signals to the peer that no more will be sent; reading remains possible.
  void FinishSending();

  /// Reads exactly `count` bytes.
  std::string Read(std::size_t count);
  /// Reads up to and including the next `mark`.
  std::string ReadThrough(std::string_view mark);
  /// Reads everything until the peer closes; a reset counts as closing.
  std::string ReadAll();

  int fd() const noexcept { return fd_; }

 private:
  TcpConnection() = default;
  // Appends what arrives next to buffer_; false when the peer has closed.
  bool Fill();
  std::string Take(std::size_t count);

  int fd_ = -1;
  std::string buffer_;
};

}  // namespace weir::test
