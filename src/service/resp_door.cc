#include "service/resp_door.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "net/listener.h"
#include "net/tls_transport.h"
#include "protocol/resp/service.h"
#include "service/resp_connection.h"

namespace weir::service {
namespace {

// Finds peers that have gone without a word, long before the idle timeout.
void KeepAlive(int fd) {
  const int on = 1;
  const int idle = 60;
  const int interval = 20;
  const int probes = 3;
  static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes));
}

}  // namespace

RespDoor::RespDoor(std::size_t reactors, LimiterOf limiter_of, RespOptions options)
    : options_(std::move(options)),
      limiter_of_(std::move(limiter_of)),
      service_(options_.hooks),
      metrics_(reactors),
      workers_(reactors) {}

RespDoor::~RespDoor() = default;

void RespDoor::Accept(net::Reactor& reactor, net::Socket socket) {
  std::unique_ptr<RespWorker>& worker = workers_[reactor.index()];
  if (!worker) {
    worker = std::make_unique<RespWorker>(options_, service_, limiter_of_(reactor),
                                          metrics_[reactor.index()]);
  }
  boost::system::error_code error;
  const net::Endpoint peer = socket.remote_endpoint(error);
  const net::Endpoint local = socket.local_endpoint(error);
  if (error) {
    return;
  }
  KeepAlive(socket.native_handle());
  auto transport = net::Carry(std::move(socket), reactor, options_.tls.get());
  if (transport == nullptr) return;
  boost::intrusive_ptr<RespConnection> connection(
      new RespConnection(reactor, *worker, std::move(transport), net::FormatEndpoint(peer),
                         net::FormatEndpoint(local)));
  connection->Start();
}

}  // namespace weir::service
