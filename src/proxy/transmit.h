#pragma once

#include <cstddef>
#include <string_view>

#include "net/transport.h"

namespace weir::proxy {

/// What became of an attempt to send.
struct Sent {
  std::size_t bytes = 0;
  bool blocked = false;  ///< the peer takes no more for now
  bool failed = false;   ///< the connection is broken
};

/// Sends as much of `head` and then `body` as the peer takes now. Nothing while earlier bytes are
/// not flushed: so no more than one buffer ever waits.
inline Sent Transmit(net::Transport& peer, std::string_view head, std::string_view body) noexcept {
  if (head.empty() && body.empty()) return {};
  if (!peer.flushed()) return {0, true, false};
  const std::ptrdiff_t sent = peer.Send(head, body);
  return {sent < 0 ? 0 : static_cast<std::size_t>(sent), sent == 0, sent < 0};
}

}  // namespace weir::proxy
