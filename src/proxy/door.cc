#include "proxy/door.h"

#include <algorithm>
#include <utility>

#include "net/tls_transport.h"
#include "proxy/session.h"

namespace weir::proxy {

namespace {

/// An upstream that is listed twice, to get more turns, is one server.
ProxyOptions WithOneHealthEach(ProxyOptions options) {
  for (Upstream& upstream : options.upstreams) {
    const auto same = std::ranges::find_if(options.upstreams, [&upstream](const Upstream& one) {
      return one.health->address() == upstream.health->address();
    });
    upstream.health = same->health;
  }
  return options;
}

}  // namespace

ProxyDoor::ProxyDoor(ProxyOptions options) : options_(WithOneHealthEach(std::move(options))) {}
ProxyDoor::~ProxyDoor() = default;

void ProxyDoor::AddReactor(net::Reactor& reactor, limiter::Limiter* limiter) {
  shared_.push_back(std::make_unique<Shared>(reactor, options_, limiter));
}

void ProxyDoor::Clear() {
  for (const auto& shared : shared_) shared->pool.Clear();
}

void ProxyDoor::Accept(net::Reactor& reactor, net::Socket socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  const auto address = error ? std::nullopt : IpAddress::Parse(peer.address().to_string());
  if (!address) return;  // closed already
  auto client = net::Carry(std::move(socket), reactor, options_.tls.get());
  if (client == nullptr) return;
  const boost::intrusive_ptr<Session> session(
      new Session(reactor, std::move(client), *address, *shared_[reactor.index()]));
  session->Start();
}

const ProxyStats& ProxyDoor::stats(std::size_t reactor) const noexcept {
  return shared_[reactor]->stats;
}

void ProxyDoor::CollectUpstreams(telemetry::TextWriter& out) const {
  out.Gauge("weir_proxy_upstream_up", "1 if the last request to the upstream was answered.");
  std::vector<const UpstreamHealth*> seen;
  for (const Upstream& upstream : options_.upstreams) {
    const UpstreamHealth* const health = upstream.health.get();
    if (std::ranges::find(seen, health) != seen.end()) continue;
    seen.push_back(health);
    const telemetry::Label label{"upstream", health->address()};
    out.Sample(std::uint64_t{health->up()}, {&label, 1});
  }
}

void CollectProxy(const ProxyDoor& door, telemetry::TextWriter& out) {
  const auto sum = [&door](std::atomic<std::uint64_t> ProxyStats::*member) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < door.reactors(); ++i) total += (door.stats(i).*member).load();
    return total;
  };
  const auto counter = [&](std::string_view name, std::string_view help,
                           std::atomic<std::uint64_t> ProxyStats::*member) {
    out.Counter(name, help);
    out.Sample(sum(member));
  };
  counter("weir_proxy_requests_total", "Requests whose head was read.", &ProxyStats::requests);
  counter("weir_proxy_rejected_total", "Requests malformed, too large or too slow.",
          &ProxyStats::rejected);
  counter("weir_proxy_upstream_errors_total", "Requests that failed because of an upstream.",
          &ProxyStats::upstream_errors);
  counter("weir_proxy_upstream_timeouts_total", "Requests that timed out at an upstream.",
          &ProxyStats::upstream_timeouts);
  counter("weir_proxy_retries_total", "Requests retried over a new connection.",
          &ProxyStats::retries);
  counter("weir_proxy_tunnels_total", "Connections upgraded to another protocol.",
          &ProxyStats::tunnels);
  counter("weir_proxy_messages_total", "WebSocket messages within their limits, if counted.",
          &ProxyStats::messages);
  counter("weir_proxy_upstream_bytes_total", "Bytes sent to upstreams.", &ProxyStats::bytes_up);
  counter("weir_proxy_client_bytes_total", "Bytes sent to clients.", &ProxyStats::bytes_down);
  door.CollectUpstreams(out);
}

}  // namespace weir::proxy
