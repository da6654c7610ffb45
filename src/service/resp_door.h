#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/limiter.h"
#include "net/door_metrics.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "protocol/resp/service.h"
#include "weir/result.h"

namespace weir::net {
class TlsContext;
}

namespace weir::service {

class RespWorker;

struct RespOptions {
  /// Whether a password opens a connection (AUTH); thread-safe, and as slow for a wrong one as for
  /// a right one. Empty: no AUTH needed.
  std::function<bool(std::string_view)> authenticate = {};
  /// Who a client at this address is, having given this password or none, if he may use the
  /// commands that are for administrators; thread-safe, and as slow likewise. Empty: everybody may.
  std::function<std::optional<std::string>(std::string_view address, std::string_view password)>
      administrator = {};
  /// As in resp::Service.
  std::function<bool(std::string_view address, std::string_view password)> knows = {};
  std::function<bool(std::string_view address, std::string_view password)> gives_back = {};
  std::function<bool(std::string_view address, std::string_view password)> stores =
      {};  ///< empty: nobody
  std::function<void(const std::string& who, std::string_view action, std::string_view key)>
      on_give_back = {};
  std::function<resp::Service::Login(std::string_view address, std::string_view subject)>
      by_subject = {};
  /// Told which administrator is about to reset which key. Thread-safe; must not block.
  std::function<void(const std::string& who, std::string_view key)> on_reset = {};
  /// Null: plain TCP.
  std::shared_ptr<net::TlsContext> tls = {};
  /// `greeting` is for the TLS handshake, and for AUTH where that is needed.
  net::Stream::Times times{.idle = std::chrono::hours(1)};
  std::string version = "0.2.0";
};

/// The Redis protocol on the reactors: CL.THROTTLE, WEIR.CHECK and what clients send around them.
///
/// Thread safety: as Door. What a reactor needs is made on its own thread at its first connection.
class RespDoor final : public net::Door {
 public:
  /// The limiter of a reactor, asked for once, on that reactor's thread. It must live as long as
  /// the reactor runs.
  using LimiterOf = std::function<limiter::Limiter&(net::Reactor&)>;

  RespDoor(std::size_t reactors, LimiterOf limiter_of, RespOptions options);
  ~RespDoor() override;

  std::string_view name() const noexcept override { return "resp"; }
  void Accept(net::Reactor& reactor, net::Socket socket) override;

  /// What all reactors have counted here. Any thread.
  net::DoorFigures Figures() const;

 private:
  const RespOptions options_;
  const LimiterOf limiter_of_;
  std::unique_ptr<resp::Service> service_;
  std::vector<net::DoorMetrics> metrics_;             // by reactor
  std::vector<std::unique_ptr<RespWorker>> workers_;  // by reactor
};

}  // namespace weir::service
