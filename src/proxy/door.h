#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "limiter/limiter.h"
#include "net/reactor.h"
#include "proxy/options.h"
#include "telemetry/metrics.h"

namespace weir::proxy {

struct Shared;

/// The proxy's listener: requests are checked against the limits and forwarded to an upstream.
///
/// Thread safety: as Door; stats may be read from any thread.
class ProxyDoor final : public net::Door {
 public:
  explicit ProxyDoor(ProxyOptions options);
  ~ProxyDoor() override;

  /// Prepares a reactor; before it runs. `limiter` belongs to that reactor, must outlive the door
  /// and may be null: nothing is limited. Call for reactors 0, 1, … in order.
  void AddReactor(net::Reactor& reactor, limiter::Limiter* limiter);
  /// Closes idle upstream connections. Call it after the reactors have stopped, before they end.
  void Clear();

  std::string_view name() const noexcept override { return "proxy"; }
  void Accept(net::Reactor& reactor, net::Socket socket) override;

  std::size_t reactors() const noexcept { return shared_.size(); }
  const ProxyStats& stats(std::size_t reactor) const noexcept;
  /// Collects weir_proxy_upstream_up.
  void CollectUpstreams(telemetry::TextWriter& out) const;

 private:
  const ProxyOptions options_;
  std::vector<std::unique_ptr<Shared>> shared_;
};

/// weir_proxy_*.
void CollectProxy(const ProxyDoor& door, telemetry::TextWriter& out);

}  // namespace weir::proxy
