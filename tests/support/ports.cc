#include "support/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>

// A port is reserved by an abstract unix socket named after it: only one process can hold that
// name, and the kernel releases it when the process ends, however it ends. The ports lie below the
// range from which the kernel serves outgoing connections.

namespace weir::test {
namespace {

constexpr int kFirst = 15000;
constexpr int kLast = 32000;

bool Reserve(std::uint16_t port) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const std::string name = "weir-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(&address.sun_path[1], name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return true;
  close(fd);
  return false;
}

bool Bindable(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

}  // namespace

std::uint16_t FreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(any(random));
    if (Bindable(port) && Reserve(port)) return port;
  }
  throw std::runtime_error("found no free port");
}

}  // namespace weir::test
