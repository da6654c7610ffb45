#include "net/reactor.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/blocking.h"
#include "net/listener.h"

namespace weir::net {
namespace {

constexpr std::chrono::milliseconds kLastWork{1'500};
/// Deadlines handled before others have their turn: closing a connection takes 10 to 30 µs.
constexpr std::size_t kDueAtOnce = 8;

std::optional<IpAddress> PeerOf(const Socket& socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  return error ? std::nullopt : IpAddress::Parse(peer.address().to_string());
}

}  // namespace

Connection::Connection(Reactor& reactor)
    : reactor_(reactor),
      share_(reactor.accepting_),
      client_(std::exchange(reactor.accepting_from_, nullptr)) {
  if (share_ != nullptr) ++share_->open;
  next_ = reactor.connections_;
  link_ = &reactor.connections_;
  if (next_ != nullptr) next_->link_ = &next_;
  reactor.connections_ = this;
  reactor.stats_.open.store(reactor.stats_.open.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
}

Connection::~Connection() {
  if (share_ != nullptr) --share_->open;
  reactor_.clients_.Leave(client_);
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  reactor_.stats_.open.store(reactor_.stats_.open.load(std::memory_order_relaxed) - 1,
                             std::memory_order_relaxed);
}

Reactor::Reactor(std::size_t index, std::size_t max_connections, ClientBound clients)
    : context_(1),
      index_(index),
      max_connections_(max_connections),
      ticker_(context_.get_executor()),
      clients_(std::move(clients)),
      turns_(context_, timers_) {}

Reactor::~Reactor() {
  // Pending handlers hold connections, which unregister from this object: let them run while it
  // still exists.
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

void Reactor::Add(std::unique_ptr<Listener> listener) {
  (void)ShareOf(listener->door());
  listeners_.push_back(std::move(listener));
}

DoorShare& Reactor::ShareOf(const Door& door) {
  for (DoorShare& share : shares_) {
    if (share.door == &door) return share;
  }
  return shares_.emplace_back(DoorShare{&door});
}

bool Reactor::HasRoomFor(const DoorShare& share) const noexcept {
  const std::size_t reserve = max_connections_ / 10;
  std::size_t kept = 0;  // for the other doors
  for (const DoorShare& other : shares_) {
    if (&other != &share && other.open < reserve) kept += reserve - other.open;
  }
  return stats_.open.load(std::memory_order_relaxed) + kept < max_connections_;
}

void Reactor::Accept(Door& door, Socket socket) {
  DoorShare& share = ShareOf(door);
  std::optional<Clients::Entry*> client;
  if (HasRoomFor(share)) {
    client = clients_.Enter(clients_.counts() ? PeerOf(socket) : std::nullopt);
  }
  if (!client) {
    stats_.rejected.fetch_add(1, std::memory_order_relaxed);
    return door.AcceptUrgent(*this, std::move(socket));
  }
  stats_.accepted.fetch_add(1, std::memory_order_relaxed);
  accepting_ = &share;
  accepting_from_ = *client;
  door.Accept(*this, std::move(socket));
  accepting_ = nullptr;
  // Still set if the door did not make a connection of it.
  clients_.Leave(std::exchange(accepting_from_, nullptr));
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
  timers_.Advance();
  RunDue();
  if (draining_) FinishDrain();
  ticker_.expires_at(ticker_.expiry() + TimerWheel::kTick);
  ticker_.async_wait([this](boost::system::error_code) { Tick(); });
}

/// Handles deadlines that are due together a few at a time, with new events in between.
void Reactor::RunDue() {
  const bool more = timers_.RunDue(kDueAtOnce);
  if (!more || std::exchange(due_posted_, true)) return;
  boost::asio::post(context_, [this] {
    due_posted_ = false;
    if (!stopping_) RunDue();
  });
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

bool Reactor::Busy() const {
  return std::any_of(busy_.begin(), busy_.end(), [](const auto& busy) { return busy(); });
}

void Reactor::FinishDrain() {
  if (!drained_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now >= drain_deadline_) {
    AbortAll();
    // Work that aborted connections leave behind gets a little time, too.
    if (Busy() && now < drain_deadline_ + kLastWork) return;
  } else {
    if (connections_ != nullptr || Busy()) return;
    for (const auto& listener : listeners_) {
      if (!listener->closed()) return;
    }
  }
  std::exchange(drained_, nullptr)();
}

}  // namespace weir::net
