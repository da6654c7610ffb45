#include "server/proxy/door.h"

#include <utility>

#include "server/proxy/session.h"

namespace weir::server::proxy {

ProxyDoor::ProxyDoor(ProxyOptions options) : options_(std::move(options)) {}
ProxyDoor::~ProxyDoor() = default;

void ProxyDoor::AddReactor(Reactor& reactor, limiter::Limiter* limiter) {
  shared_.push_back(std::make_unique<Shared>(reactor, options_, limiter));
}

void ProxyDoor::Clear() {
  for (const auto& shared : shared_) shared->pool.Clear();
}

void ProxyDoor::Accept(Reactor& reactor, Socket socket) {
  const boost::intrusive_ptr<Session> session(
      new Session(reactor, std::move(socket), *shared_[reactor.index()]));
  session->Start();
}

const ProxyStats& ProxyDoor::stats(std::size_t reactor) const noexcept {
  return shared_[reactor]->stats;
}

}  // namespace weir::server::proxy
