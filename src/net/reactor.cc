#include "net/reactor.h"

#include <utility>

#include "base/blocking.h"
#include "net/listener.h"

namespace weir::net {

Connection::Connection(Reactor& reactor) : reactor_(reactor) {
  next_ = reactor.connections_;
  link_ = &reactor.connections_;
  if (next_ != nullptr) next_->link_ = &next_;
  reactor.connections_ = this;
  reactor.stats_.open.store(reactor.stats_.open.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
}

Connection::~Connection() {
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  reactor_.stats_.open.store(reactor_.stats_.open.load(std::memory_order_relaxed) - 1,
                             std::memory_order_relaxed);
}

Reactor::Reactor(std::size_t index, std::size_t max_connections)
    : context_(1),
      index_(index),
      max_connections_(max_connections),
      ticker_(context_.get_executor()) {}

Reactor::~Reactor() {
  // Pending handlers hold connections, which need this object to leave: let them run while it
  // stands.
  AbortAll();
  for (const auto& listener : listeners_) listener->Abort();
  ticker_.cancel();
  stopping_ = true;
  context_.restart();
  context_.poll();
}

void Reactor::AbortAll() {
  for (Connection* next = connections_; next != nullptr;) {
    // Ending one connection ends no other.
    Connection* connection = next;
    next = next->next_;
    connection->Abort();
  }
}

void Reactor::Add(std::unique_ptr<Listener> listener) { listeners_.push_back(std::move(listener)); }

void Reactor::Accept(Door& door, Socket socket) {
  if (stats_.open.load(std::memory_order_relaxed) >= max_connections_) {
    stats_.rejected.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  stats_.accepted.fetch_add(1, std::memory_order_relaxed);
  door.Accept(*this, std::move(socket));
}

void Reactor::Run() {
  for (const auto& listener : listeners_) listener->Start();
  ticker_.expires_after(TimerWheel::kTick);
  ticker_.async_wait([this](boost::system::error_code) { Tick(); });
  const NeverBlocks mark;
  context_.run();
}

void Reactor::Tick() {
  if (stopping_) return;
  timers_.Tick();
  if (draining_) FinishDrain();
  ticker_.expires_at(ticker_.expiry() + TimerWheel::kTick);
  ticker_.async_wait([this](boost::system::error_code) { Tick(); });
}

void Reactor::Drain(std::chrono::milliseconds patience, std::function<void()> done) {
  drain_deadline_ = std::chrono::steady_clock::now() + patience;
  drained_ = std::move(done);
  draining_ = true;
  for (const auto& listener : listeners_) listener->Close();
  for (Connection* next = connections_; next != nullptr;) {
    // As above: draining one connection may end it, but no other.
    Connection* connection = next;
    next = next->next_;
    connection->Drain();
  }
}

void Reactor::FinishDrain() {
  if (!drained_) return;
  if (std::chrono::steady_clock::now() >= drain_deadline_) {
    AbortAll();
  } else {
    if (connections_ != nullptr) return;
    for (const auto& listener : listeners_) {
      if (!listener->closed()) return;
    }
  }
  std::exchange(drained_, nullptr)();
}

}  // namespace weir::net
