#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace weir::proxy {

/// What became of an attempt to send.
struct Sent {
  std::size_t bytes = 0;
  bool blocked = false;  ///< the peer takes no more for now
  bool failed = false;   ///< the peer is gone
};

/// Sends as much of `head` and then `body` as the kernel takes at once, in one call and without
/// waiting: most messages fit, and then no operation has to be queued.
inline Sent Transmit(int fd, std::string_view head, std::string_view body) noexcept {
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  for (const std::string_view part : {head, body}) {
    if (part.empty()) continue;
    parts[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  if (count == 0) return {};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  while (true) {
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return {static_cast<std::size_t>(sent), false, false};
    if (errno == EINTR) continue;
    const bool blocked = errno == EAGAIN || errno == EWOULDBLOCK;
    return {0, blocked, !blocked};
  }
}

}  // namespace weir::proxy
