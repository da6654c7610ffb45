#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "limiter/assignments.h"
#include "limiter/limiter.h"
#include "net/door_metrics.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "protocol/grpc/rls.h"
#include "protocol/grpc/session.h"

namespace weir::net {
class TlsContext;
}

namespace weir::service {

struct GrpcDoorOptions {
  grpc::SessionOptions session;
  grpc::RlsOptions rls;
  /// Where assignments of quotas are published; must outlive the door. Null: nowhere.
  limiter::Assignments* assignments = nullptr;
  /// Who may call what (grpc::Services::SetGuard). Thread-safe. Empty: no restrictions.
  grpc::Services::Guard guard;
  /// `greeting` is for the peer to show that it speaks HTTP/2. A connection without calls is asked
  /// to close after `idle`; each request has its own time limit (SessionOptions::request_timeout).
  net::Stream::Times times{.idle = std::chrono::minutes(10)};
  /// Null: plaintext with prior knowledge (h2c). Its ALPN protocols should be {"h2"}.
  std::shared_ptr<net::TlsContext> tls;
  /// When the service shuts down, streams that have not ended by then are ended.
  std::chrono::milliseconds drain_grace{1'000};
};

/// gRPC over HTTP/2: Envoy's rate limit service and its rate limit quota service, weir.v1, health
/// and reflection.
///
/// Thread safety: as Door. A reactor's state is created on its own thread at its first connection.
class GrpcDoor final : public net::Door {
 public:
  /// The limiter of a reactor, requested once, on that reactor's thread. It must live as long as
  /// the reactor runs.
  using LimiterOf = std::function<limiter::Limiter&(net::Reactor&)>;

  GrpcDoor(std::size_t reactors, LimiterOf limiter_of, GrpcDoorOptions options);
  ~GrpcDoor() override;

  std::string_view name() const noexcept override { return "grpc"; }
  void Accept(net::Reactor& reactor, net::Socket socket) override;

  /// What all reactors have counted here. Any thread.
  net::DoorFigures Figures() const { return {name(), metrics_}; }

 private:
  struct Worker;

  const GrpcDoorOptions options_;
  limiter::Assignments unshown_;  // if the options name none
  const LimiterOf limiter_of_;
  std::vector<net::DoorMetrics> metrics_;         // one per reactor
  std::vector<std::unique_ptr<Worker>> workers_;  // one per reactor
};

}  // namespace weir::service
