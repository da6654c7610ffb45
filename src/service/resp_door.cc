#include "service/resp_door.h"

#include <utility>

#include "net/listener.h"
#include "net/tls_transport.h"
#include "protocol/resp/service.h"
#include "service/resp_connection.h"

namespace weir::service {
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
  auto transport = net::Carry(std::move(socket), reactor, options_.tls.get());
  if (transport == nullptr) return;
  boost::intrusive_ptr<RespConnection> connection(
      new RespConnection(reactor, *worker, std::move(transport), net::FormatEndpoint(peer),
                         net::FormatEndpoint(local)));
  connection->Start();
}

}  // namespace weir::service
