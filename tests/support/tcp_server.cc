#include "support/tcp_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace weir::test {

TcpServer::TcpServer(Serve serve, std::uint16_t port)
    : serve_(std::move(serve)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int again = 1;  // reuse a port that was in use a moment ago
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, generic, size) != 0 || listen(listener_, 128) != 0 ||
      getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("cannot listen on a port of the loopback interface");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Run(); });
}

void TcpServer::StopListening() noexcept { shutdown(listener_, SHUT_RDWR); }

TcpServer::~TcpServer() {
  StopListening();
  acceptor_.join();
  close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

void TcpServer::Run() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ++accepted_;
    ++open_;
    const std::lock_guard lock(mutex_);
    fds_.push_back(fd);
    threads_.emplace_back([this, fd] { ServeOne(fd); });
  }
}

void TcpServer::ServeOne(int fd) {
  TcpConnection connection = TcpConnection::Adopt(fd);
  try {
    serve_(connection);
  } catch (const std::exception&) {
    // The peer has closed, which is how most scripts end.
  }
  const std::lock_guard lock(mutex_);
  fds_.erase(std::find(fds_.begin(), fds_.end(), fd));
  // Closed under the lock, so that the destructor never touches a descriptor that is in use again.
  { const TcpConnection closing = std::move(connection); }
  --open_;
}

}  // namespace weir::test
