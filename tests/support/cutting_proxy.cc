#include "support/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace weir::test {
namespace {

constexpr int kPollMs = 20;

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool SendAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(std::uint16_t target) : target_(target) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ::close(listener_);
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

CuttingProxy::~CuttingProxy() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

void CuttingProxy::Accept() {
  while (!stopping_) {
    pollfd fd = {listener_, POLLIN, 0};
    if (::poll(&fd, 1, kPollMs) <= 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) threads_.emplace_back([this, client] { Serve(client); });
  }
}

void CuttingProxy::Serve(int client) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_);
  const int cuts_at_start = cuts_wanted_;
  bool open = ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int on = 1;
  for (const int fd : {client, server}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::array<char, 65536> bytes;
  bool clients_turn = true;
  while (open && !stopping_) {
    if (held_) {
      ::poll(nullptr, 0, kPollMs);
      continue;
    }
    std::array<pollfd, 2> fds = {pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), kPollMs) <= 0) continue;
    for (std::size_t i = 0; i < fds.size() && open; ++i) {
      if (fds[i].revents == 0) continue;
      const ssize_t count = ::recv(fds[i].fd, bytes.data(), bytes.size(), 0);
      open = count > 0;
      if (!open) break;
      if (i == 0 && clients_turn) ++round_trips_;
      clients_turn = i == 1;
      auto size = static_cast<std::size_t>(count);
      const bool cutting = fds[i].fd == server && cuts_wanted_ != cuts_at_start;
      if (cutting) size /= 2;
      open = SendAll(fds[1 - i].fd, bytes.data(), size) && !cutting;
      if (cutting) ++cut_;
    }
  }
  ::close(server);
  ::close(client);
}

}  // namespace weir::test
