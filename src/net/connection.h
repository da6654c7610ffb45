#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>

#include "net/clients.h"
#include "net/timer_wheel.h"

namespace weir::net {

class Reactor;
struct DoorShare;

/// Lives as long as a boost::intrusive_ptr to it exists: its owner holds one, and so does every
/// pending operation.
///
/// Not thread-safe: even the reference counting happens on one reactor's thread only.
class Counted {
 public:
  Counted() = default;
  virtual ~Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  friend void intrusive_ptr_add_ref(Counted* counted) noexcept { ++counted->references_; }
  friend void intrusive_ptr_release(Counted* counted) noexcept {
    if (--counted->references_ == 0) delete counted;
  }

 private:
  std::size_t references_ = 0;
};

/// Uses the concrete executor: the type-erased one costs a virtual call and an allocation per
/// operation.
using Socket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

/// A live connection as its reactor sees it: counted, timed, drained. Counted references
/// (boost::intrusive_ptr) keep it alive; every pending operation's handler holds one.
///
/// Thread safety: everything happens on the reactor's thread, including the reference counting.
class Connection : public Counted, public TimerWheel::Entry {
 public:
  /// Registers with the reactor, which counts it against the connection limit.
  explicit Connection(Reactor& reactor);
  ~Connection() override;

  /// The service is shutting down: answer what was received, then close; when idle, close soon.
  virtual void Drain() = 0;
  /// Closes immediately, whatever is under way.
  virtual void Abort() = 0;

  Reactor& reactor() const noexcept { return reactor_; }

 private:
  friend class Reactor;

  Reactor& reactor_;
  DoorShare* const share_;        // of the door that accepted it; null: none
  Clients::Entry* const client_;  // whose it is; null: not counted
  Connection* next_ = nullptr;
  Connection** link_ = nullptr;
};

}  // namespace weir::net
