#include "net/listener.h"

#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstring>
#include <limits>
#include <utility>

#include "base/lasting.h"
#include "base/number.h"
#include "base/url.h"

namespace weir::net {
namespace asio = boost::asio;
namespace {

constexpr int kBacklog = 4096;
/// Connections accepted before open ones get a turn: thousands that are opened at the same time
/// must not delay the answers of the others.
constexpr int kAtOnce = 4;
/// How long handshakes under way may take to complete before the accepting socket is closed.
constexpr std::chrono::milliseconds kHandshakeGrace{50};
/// The pause after running out of file descriptors or memory, for some connection to end.
constexpr std::chrono::milliseconds kAcceptRetry{100};

/// A peer that does not answer is dropped after two minutes. In seconds, except for the count.
constexpr int kKeepAliveIdle = 60;
constexpr int kKeepAliveInterval = 20;
constexpr int kKeepAliveProbes = 3;

Error BadAddress(std::string_view text, std::string_view why) {
  return Error{Code::kInvalidArgument, "bad address \"" + std::string(text) +
                                           "\": " + std::string(why) +
                                           "; write it as 127.0.0.1:8080 or [::1]:8080"};
}

std::string_view WhatToDo(const boost::system::error_code& error) {
  if (error == boost::system::errc::address_in_use) {
    return "; stop the program that listens there, or use another port";
  }
  if (error == boost::system::errc::address_not_available)
    return "; this machine has no such address";
  if (error == boost::system::errc::permission_denied) {
    return "; use a port from 1024 up, or give the program CAP_NET_BIND_SERVICE";
  }
  return "";
}

/// Drops the packets that would begin a handshake, and no others. Closing an accepting socket
/// resets connections that wait to be accepted; with this filter there are none left when it is
/// closed.
void RefuseNewHandshakes(int fd) {
  std::array<sock_filter, 5> code = {{
      {BPF_LD | BPF_B | BPF_ABS, 0, 0, 13},     // the TCP flags
      {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x12},  // SYN, ACK
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0x02},  // SYN alone?
      {BPF_RET | BPF_K, 0, 0, 0},
      {BPF_RET | BPF_K, 0, 0, 0xffffffff},
  }};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  // Where the kernel does not allow it, closing has the small gap that any server has.
  (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return BadAddress(text, "missing port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  const auto port = ParseNumber<std::uint16_t>(port_text);
  if (!port) return BadAddress(text, "the port must be a number from 0 to 65535");
  if (host.empty()) return Endpoint(asio::ip::tcp::v4(), *port);
  if (host == "localhost") host = "127.0.0.1";
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(std::string(host), error);
  if (error) return BadAddress(text, "the host must be an IP address or localhost");
  return Endpoint(address, *port);
}

std::string FormatEndpoint(const Endpoint& endpoint) {
  return JoinHostPort(endpoint.address().to_string(), endpoint.port());
}

Listener::Listener(Reactor& reactor, Door& door)
    : reactor_(reactor),
      door_(door),
      acceptor_(reactor.context()),
      timer_(reactor.context().get_executor()) {}

Result<Endpoint> Listener::Open(const Endpoint& endpoint, Port port) {
  boost::system::error_code error;
  const auto failed = [&](std::string_view what) {
    return Error{CodeOfOpening(error), std::string(door_.name()) + ": cannot " + std::string(what) +
                                           " " + FormatEndpoint(endpoint) + ": " + error.message() +
                                           std::string(WhatToDo(error))};
  };
  const auto set = [&](int level, int option, int value = 1) {
    if (setsockopt(acceptor_.native_handle(), level, option, &value, sizeof value) == 0)
      return true;
    error.assign(errno, boost::system::system_category());
    return false;
  };
  acceptor_.open(endpoint.protocol(), error);
  if (error) return failed("open a socket for");
  // Accepted sockets inherit TCP_NODELAY and the keepalive, which finds peers that have vanished:
  // some calls, such as a gRPC Watch, have no time limit.
  if (!set(SOL_SOCKET, SO_REUSEADDR) || !set(IPPROTO_TCP, TCP_NODELAY) ||
      !set(SOL_SOCKET, SO_KEEPALIVE) || !set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle) ||
      !set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveInterval) ||
      !set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes) ||
      (port == Port::kJoin && !set(SOL_SOCKET, SO_REUSEPORT))) {
    return failed("set options for");
  }
  acceptor_.bind(endpoint, error);
  if (error) return failed("bind");
  acceptor_.listen(kBacklog, error);
  if (error) return failed("listen on");
  // The socket that takes the port lets others join only now that no other process can have it: of
  // two processes that start at the same moment, one fails above.
  if (port == Port::kTake && !set(SOL_SOCKET, SO_REUSEPORT)) return failed("set options for");
  const Endpoint bound = acceptor_.local_endpoint(error);
  if (error) return failed("read the address of");
  acceptor_.non_blocking(true, error);
  if (error) return failed("set options for");
  return bound;
}

void Listener::Start() { AcceptNext(); }

void Listener::AcceptNext() {
  acceptor_.async_accept(acceptor_.get_executor(),
                         [this](boost::system::error_code error, Socket accepted) {
                           if (!acceptor_.is_open() || error == asio::error::operation_aborted)
                             return;
                           if (error) {
                             timer_.expires_after(kAcceptRetry);
                             timer_.async_wait([this](boost::system::error_code cancelled) {
                               if (!cancelled && acceptor_.is_open()) AcceptNext();
                             });
                             return;
                           }
                           reactor_.Accept(door_, std::move(accepted));
                           AcceptPending(kAtOnce - 1);
                           AcceptNext();
                         });
}

void Listener::AcceptPending(int most) {
  boost::system::error_code error;
  for (int accepted = 0; accepted < most && acceptor_.is_open(); ++accepted) {
    Socket socket(reactor_.context());
    acceptor_.accept(socket, error);
    if (error) return;
    reactor_.Accept(door_, std::move(socket));
  }
}

void Listener::Close() {
  if (!acceptor_.is_open()) return;
  RefuseNewHandshakes(acceptor_.native_handle());
  timer_.expires_after(kHandshakeGrace);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) AcceptPending(std::numeric_limits<int>::max());
    Abort();
  });
}

void Listener::Abort() {
  boost::system::error_code ignored;
  timer_.cancel();
  acceptor_.close(ignored);
}

}  // namespace weir::net
