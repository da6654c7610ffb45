#include "support/tcp_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace weir::test {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::generic_category().message(errno));
}

void SetTimeout(int fd, std::chrono::milliseconds timeout) {
  timeval value{};
  value.tv_sec = static_cast<time_t>(timeout.count() / 1000);
  value.tv_usec = static_cast<suseconds_t>(timeout.count() % 1000 * 1000);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

}  // namespace

TcpConnection::TcpConnection(std::uint16_t port, const std::string& host,
                             std::chrono::milliseconds timeout)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) Fail("socket");
  SetTimeout(fd_, timeout);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    close(fd_);
    throw std::runtime_error("not an IPv4 address: " + host);
  }
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int reason = errno;
    close(fd_);
    errno = reason;
    Fail("connect to " + host + ":" + std::to_string(port));
  }
}

TcpConnection TcpConnection::Adopt(int fd, std::chrono::milliseconds timeout) {
  TcpConnection connection;
  connection.fd_ = fd;
  SetTimeout(fd, timeout);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

TcpConnection::~TcpConnection() {
  if (fd_ >= 0) close(fd_);
}

TcpConnection::TcpConnection(TcpConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

TcpConnection& TcpConnection::operator=(TcpConnection&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

void TcpConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) Fail("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void TcpConnection::FinishSending() { shutdown(fd_, SHUT_WR); }

bool TcpConnection::Fill() {
  std::array<char, 65536> chunk{};
  ssize_t got = 0;
  do {
    got = recv(fd_, chunk.data(), chunk.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == ECONNRESET) return false;
  if (got < 0) Fail("receive (so far: \"" + buffer_.substr(0, 200) + "\")");
  buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::string TcpConnection::Take(std::size_t count) {
  std::string taken = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return taken;
}

std::string TcpConnection::Read(std::size_t count) {
  while (buffer_.size() < count) {
    if (!Fill()) throw std::runtime_error("the peer closed after \"" + buffer_ + "\"");
  }
  return Take(count);
}

std::string TcpConnection::ReadThrough(std::string_view mark) {
  std::size_t at = 0;
  while ((at = buffer_.find(mark)) == std::string::npos) {
    if (!Fill()) throw std::runtime_error("the peer closed after \"" + buffer_ + "\"");
  }
  return Take(at + mark.size());
}

std::string TcpConnection::ReadAll() {
  while (Fill()) {
  }
  return std::exchange(buffer_, {});
}

}  // namespace weir::test
