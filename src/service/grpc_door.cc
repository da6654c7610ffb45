#include "service/grpc_door.h"

#include <boost/asio/post.hpp>
#include <random>
#include <string>
#include <utility>

#include "base/boot_clock.h"
#include "net/tls_transport.h"
#include "protocol/grpc/decider.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/method.h"
#include "protocol/grpc/quota_streams.h"
#include "protocol/grpc/reflection.h"
#include "protocol/grpc/rlqs.h"
#include "protocol/grpc/weir_service.h"
#include "service/grpc_connection.h"

namespace weir::service {
namespace {

std::vector<std::string> ServiceNames() {
  return {"envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
          "envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health",
          "weir.v1.Limiter"};
}

// The wheel adds up to a tick to it. A random part keeps the nodes that share a limit from
// asking in the same order each second.
constexpr std::chrono::milliseconds kLeastPush{700};
constexpr std::chrono::milliseconds kMostPush{900};

}  // namespace

/// What serves the calls of one reactor.
struct GrpcDoor::Worker final : net::TimerWheel::Entry {
  Worker(net::Reactor& its_reactor, limiter::Limiter& limiter, limiter::Assignments& assignments,
         const grpc::RlsOptions& rls)
      : reactor(its_reactor),
        decider(limiter),
        health(ServiceNames()),
        quotas(limiter, assignments, BootClock::Get()) {
    services.Add(std::string(grpc::kStreamRateLimitQuotasPath),
                 grpc::MakeStreamRateLimitQuotas(quotas));
    services.Add(std::string(grpc::kShouldRateLimitPath), grpc::MakeShouldRateLimit(decider, rls));
    grpc::AddWeirService(services, decider);
    health.AddTo(services);
    grpc::AddReflection(services, ServiceNames());
    services.OnBurstEnd([this] {
      if (decider.Begin()) DecideLater();
    });
    reactor.AwaitInDrain([this] { return quotas.owing() || decider.midway(); });
    OnDeadline();
  }

  void OnDeadline() override {
    if (quotas.Tick()) TurnLater();
    std::uniform_int_distribution<std::int64_t> span(kLeastPush.count(), kMostPush.count());
    reactor.timers().Set(*this, std::chrono::milliseconds(span(random)));
  }

  /// Runs the rest of a tick, a part at a time: connections have their turn in between.
  void TurnLater() {
    if (std::exchange(turning, true)) return;
    boost::asio::post(reactor.context(), [this] {
      turning = false;
      if (!reactor.stopping() && quotas.Turn()) TurnLater();
    });
  }

  /// Likewise the rest of messages with many checks.
  void DecideLater() {
    if (std::exchange(deciding, true)) return;
    boost::asio::post(reactor.context(), [this] {
      deciding = false;
      if (!reactor.stopping() && decider.Turn()) DecideLater();
    });
  }

  net::Reactor& reactor;
  grpc::Decider decider;
  grpc::Health health;
  grpc::QuotaStreams quotas;
  grpc::Services services;
  std::minstd_rand random{std::random_device{}()};
  bool turning = false;   // a turn of the quotas is scheduled
  bool deciding = false;  // a turn of the decider is scheduled
};

GrpcDoor::GrpcDoor(std::size_t reactors, LimiterOf limiter_of, GrpcDoorOptions options)
    : options_(std::move(options)),
      limiter_of_(std::move(limiter_of)),
      metrics_(reactors),
      workers_(reactors) {}

GrpcDoor::~GrpcDoor() = default;

void GrpcDoor::Accept(net::Reactor& reactor, net::Socket socket) {
  std::unique_ptr<Worker>& worker = workers_.at(reactor.index());
  if (!worker) {
    worker = std::make_unique<Worker>(
        reactor, limiter_of_(reactor),
        options_.assignments == nullptr ? unshown_ : *options_.assignments, options_.rls);
    worker->services.SetGuard(options_.guard);
  }
  boost::system::error_code gone;
  const auto peer = socket.remote_endpoint(gone);
  auto transport = net::Carry(std::move(socket), reactor, options_.tls.get());
  if (transport == nullptr) return;
  boost::intrusive_ptr<GrpcConnection> connection(
      new GrpcConnection(reactor, std::move(transport), worker->services, worker->health,
                         metrics_[reactor.index()], options_));
  if (options_.guard) connection->SetPeer(peer.address().to_string());
  connection->Start();
}

}  // namespace weir::service
