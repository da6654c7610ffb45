#pragma once

// One reactor per core: an io_context, its thread, its connections. A connection never changes its
// reactor, so nothing that serves a check is shared between threads except the store behind it.

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "net/clients.h"
#include "net/connection.h"
#include "net/timer_wheel.h"
#include "net/turns.h"
#include "weir/result.h"

namespace weir::net {

class Listener;

/// A protocol served on a listening address, on all reactors.
///
/// Thread safety: Accept is called on every reactor's thread; keep state per reactor.index().
class Door {
 public:
  virtual ~Door() = default;

  /// As printed and labelled: "http", "grpc", "resp".
  virtual std::string_view name() const noexcept = 0;

  /// Takes over a fresh connection (TCP_NODELAY is set), normally by making a Connection that owns
  /// the socket. A socket that is destroyed is closed.
  virtual void Accept(Reactor& reactor, Socket socket) = 0;

  /// Like Accept, when there are too many connections already: for doors with requests that must
  /// always be answered. Must itself bound the number and the time of such connections.
  virtual void AcceptUrgent(Reactor& reactor, Socket socket) {
    (void)reactor;
    (void)socket;
  }
};

/// One reactor's connections that one door accepted.
struct DoorShare {
  const Door* door = nullptr;
  std::size_t open = 0;
};

/// Counters of one reactor, written by its thread and readable from any.
struct ReactorStats {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> rejected{0};  ///< too many connections, or too many of one client
  std::atomic<std::uint64_t> open{0};
};

/// Thread safety: methods are for the reactor's own thread unless they say otherwise.
class Reactor {
 public:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;

  Reactor(std::size_t index, std::size_t max_connections, ClientBound clients = {});
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  /// Posting to it is allowed from any thread.
  boost::asio::io_context& context() noexcept { return context_; }
  std::size_t index() const noexcept { return index_; }
  TimerWheel& timers() noexcept { return timers_; }
  Turns& turns() noexcept { return turns_; }
  /// Any thread.
  const ReactorStats& stats() const noexcept { return stats_; }
  /// True once the service has begun to shut down: replies should say `Connection: close`.
  bool draining() const noexcept { return draining_; }

  /// True while it is being destroyed: handlers that still run release all and start nothing.
  bool stopping() const noexcept { return stopping_; }

  /// Hands a fresh socket to the door. A tenth of all connections is reserved for each other door,
  /// so that no door starves another; beyond that, and beyond what one client may have, it goes to
  /// the door's AcceptUrgent.
  void Accept(Door& door, Socket socket);
  /// Owns the listener from now on. Before Run.
  void Add(std::unique_ptr<Listener> listener);

  /// Serves until Stop.
  void Run();
  /// Any thread.
  void Stop() { context_.stop(); }
  /// Accepts no new connections and drains the open ones; `done` runs when the last has closed.
  /// After `patience` the rest is aborted.
  void Drain(std::chrono::milliseconds patience, std::function<void()> done);
  /// A drain also waits until this returns false: for work that closed connections leave. Must be
  /// callable as long as the reactor runs.
  void AwaitInDrain(std::function<bool()> busy) { busy_.push_back(std::move(busy)); }

 private:
  friend class Connection;
  void Tick();
  void RunDue();
  void FinishDrain();
  DoorShare& ShareOf(const Door& door);
  bool HasRoomFor(const DoorShare& share) const noexcept;
  void AbortAll();
  bool Busy() const;

  boost::asio::io_context context_;
  const std::size_t index_;
  const std::size_t max_connections_;
  TimerWheel timers_;
  Timer ticker_;
  ReactorStats stats_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::deque<DoorShare> shares_;
  Clients clients_;
  DoorShare* accepting_ = nullptr;            // whose connection is being made
  Clients::Entry* accepting_from_ = nullptr;  // its client
  Connection* connections_ = nullptr;
  bool draining_ = false;
  bool stopping_ = false;
  bool due_posted_ = false;
  std::chrono::steady_clock::time_point drain_deadline_;
  std::function<void()> drained_;
  std::vector<std::function<bool()>> busy_;
  Turns turns_;  // destroyed first: waiting operations hold connections
};

}  // namespace weir::net
