#include "service/grpc_door.h"

#include <string>
#include <utility>

#include "net/tls_transport.h"
#include "protocol/grpc/decider.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/method.h"
#include "protocol/grpc/reflection.h"
#include "protocol/grpc/weir_service.h"
#include "service/grpc_connection.h"

namespace weir::service {
namespace {

std::vector<std::string> ServiceNames() {
  return {"envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health",
          "weir.v1.Limiter"};
}

}  // namespace

/// What serves the calls of one reactor.
struct GrpcDoor::Desk {
  Desk(limiter::Limiter& limiter, const grpc::RlsOptions& rls)
      : decider(limiter), health(ServiceNames()) {
    services.Add(std::string(grpc::kShouldRateLimitPath), grpc::MakeShouldRateLimit(decider, rls));
    grpc::AddWeirService(services, decider);
    health.AddTo(services);
    grpc::AddReflection(services, ServiceNames());
    services.OnBurstEnd([this] { decider.Flush(); });
  }

  grpc::Decider decider;
  grpc::Health health;
  grpc::Services services;
};

GrpcDoor::GrpcDoor(std::size_t reactors, LimiterOf limiter_of, GrpcDoorOptions options)
    : options_(std::move(options)),
      limiter_of_(std::move(limiter_of)),
      metrics_(reactors),
      desks_(reactors) {}

GrpcDoor::~GrpcDoor() = default;

net::DoorFigures GrpcDoor::Figures() const {
  net::DoorFigures figures{name(), {}};
  for (const net::DoorMetrics& part : metrics_) figures.parts.push_back(&part);
  return figures;
}

void GrpcDoor::Accept(net::Reactor& reactor, net::Socket socket) {
  std::unique_ptr<Desk>& desk = desks_.at(reactor.index());
  if (!desk) {
    desk = std::make_unique<Desk>(limiter_of_(reactor), options_.rls);
    desk->services.SetGuard(options_.guard);
  }
  boost::system::error_code gone;
  const auto peer = socket.remote_endpoint(gone);
  auto transport = net::Carry(std::move(socket), reactor, options_.tls.get());
  if (transport == nullptr) return;
  boost::intrusive_ptr<GrpcConnection> connection(
      new GrpcConnection(reactor, std::move(transport), desk->services, desk->health,
                         metrics_[reactor.index()], options_));
  if (options_.guard) connection->SetPeer(peer.address().to_string());
  connection->Start();
}

}  // namespace weir::service
