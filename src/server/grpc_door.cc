#include "server/grpc_door.h"

#include <string>
#include <utility>

#include "protocol/grpc/decider.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/method.h"
#include "protocol/grpc/reflection.h"
#include "protocol/grpc/weir_service.h"
#include "server/grpc_connection.h"

namespace weir::server {
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

GrpcDoor::GrpcDoor(const GrpcDoorOptions& options, std::vector<limiter::Limiter*> limiters)
    : options_(options) {
  for (limiter::Limiter* limiter : limiters) {
    desks_.push_back(std::make_unique<Desk>(*limiter, options_.rls));
  }
}

GrpcDoor::~GrpcDoor() = default;

void GrpcDoor::Accept(Reactor& reactor, Socket socket) {
  Desk& desk = *desks_.at(reactor.index());
  boost::intrusive_ptr<GrpcConnection<Socket>> connection(
      new GrpcConnection<Socket>(reactor, std::move(socket), desk.services, desk.health, options_));
  connection->Start();
}

}  // namespace weir::server
