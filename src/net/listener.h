#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <string_view>

#include "net/reactor.h"
#include "weir/result.h"

namespace weir::net {

using Endpoint = boost::asio::ip::tcp::endpoint;

/// "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or ":8080" (all addresses).
Result<Endpoint> ParseEndpoint(std::string_view text);
/// The form that ParseEndpoint reads.
std::string FormatEndpoint(const Endpoint& endpoint);

/// Whether a listener must be the first on its port, or joins those that this process has on it.
enum class Port { kTake, kJoin };

/// One reactor's accepting socket for one protocol. All reactors' sockets for the same address
/// share the port (SO_REUSEPORT) and the kernel spreads connections over them. The first one takes
/// the port exclusively, so that a second process fails instead of getting every other connection.
///
/// Thread safety: Open may run on any thread before the reactor does; then the reactor's only.
class Listener {
 public:
  Listener(Reactor& reactor, Door& door);

  /// Binds and listens; returns the endpoint with the port that was chosen if `endpoint` had port
  /// 0. With kTake it is an error if another socket listens there already.
  Result<Endpoint> Open(const Endpoint& endpoint, Port port);
  /// Starts accepting.
  void Start();
  /// Drops new handshakes, accepts those that are under way, then closes.
  void Close();
  /// Closes immediately.
  void Abort();
  const Door& door() const noexcept { return door_; }
  bool closed() const noexcept { return !acceptor_.is_open(); }

 private:
  void AcceptNext();
  void AcceptPending(int most);

  Reactor& reactor_;
  Door& door_;
  boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, boost::asio::io_context::executor_type>
      acceptor_;
  Reactor::Timer timer_;
};

}  // namespace weir::net
