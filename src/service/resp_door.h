#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "limiter/limiter.h"
#include "net/door_metrics.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "protocol/resp/service.h"

namespace weir::net {
class TlsContext;
}

namespace weir::service {

class RespWorker;

struct RespOptions {
  resp::Hooks hooks = {};
  /// Null: plain TCP.
  std::shared_ptr<net::TlsContext> tls = {};
  /// `greeting` is for the TLS handshake, and for AUTH where that is needed.
  net::Stream::Times times{.idle = std::chrono::hours(1)};
};

/// The Redis protocol on the reactors: CL.THROTTLE, WEIR.CHECK and what clients send around them.
///
/// Thread safety: as Door. A reactor's state is created on its own thread at its first connection.
class RespDoor final : public net::Door {
 public:
  /// The limiter of a reactor, requested once, on that reactor's thread. It must live as long as
  /// the reactor runs.
  using LimiterOf = std::function<limiter::Limiter&(net::Reactor&)>;

  RespDoor(std::size_t reactors, LimiterOf limiter_of, RespOptions options);
  ~RespDoor() override;

  std::string_view name() const noexcept override { return "resp"; }
  void Accept(net::Reactor& reactor, net::Socket socket) override;

  /// What all reactors have counted here. Any thread.
  net::DoorFigures Figures() const { return {name(), metrics_}; }

 private:
  const RespOptions options_;
  const LimiterOf limiter_of_;
  resp::Service service_;
  std::vector<net::DoorMetrics> metrics_;             // by reactor
  std::vector<std::unique_ptr<RespWorker>> workers_;  // by reactor
};

}  // namespace weir::service
