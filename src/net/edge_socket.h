#pragma once

// A connection's socket with no more system calls than bytes need: one receive for what has come,
// one send for the answers. Asio's own reads always try once more and find nothing, since an edge
// is told only once; here the kernel says with each receive whether there is more (TCP_INQ), so the
// socket waits for the next edge at once. It waits in the reactor's own epoll, beside everything
// else that asio watches, through the interface that asio's sockets use themselves (see
// docs/adr/0004-sockets-on-edges.md).

#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/detail/reactor_op.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <span>
#include <string_view>

#include "net/connection.h"

namespace weir::net {

/// Thread safety: belongs to its reactor's thread.
class EdgeSocket {
 public:
  /// Who is told. Is kept alive, as a Connection, while it waits for something.
  class Watcher {
   public:
    /// Receive will probably give something: bytes, the end, or an error.
    virtual void OnReadable() = 0;
    /// Send will probably take something.
    virtual void OnWritable() = 0;

   protected:
    ~Watcher() = default;
  };

  /// Takes over what `socket` held. Not open if that failed.
  EdgeSocket(Socket socket, Connection& connection, Watcher& watcher);
  ~EdgeSocket();
  EdgeSocket(const EdgeSocket&) = delete;
  EdgeSocket& operator=(const EdgeSocket&) = delete;

  bool is_open() const noexcept { return fd_ >= 0; }

  enum class Outcome { kBytes, kNothing, kEnd, kBroken };
  struct Received {
    Outcome outcome;
    std::size_t size = 0;
  };
  /// Takes what has come, as much as fits. Requires that it is open.
  Received Receive(std::span<char> space) noexcept;
  /// The last Receive left something: call it again, now or after AwaitReadable.
  bool more() const noexcept { return more_; }

  /// Sends what the kernel takes now and says how much; -1: the connection is broken.
  std::ptrdiff_t Send(std::string_view bytes) noexcept;

  /// OnReadable once, as soon as there is something, but never from within this call. Without
  /// effect while it is waiting already.
  void AwaitReadable();
  /// Likewise OnWritable.
  void AwaitWritable();

  /// Ends our side: the peer reads the end after what has been sent.
  bool ShutDownSend() noexcept;
  /// Nobody is told anything any more.
  void Close() noexcept;

 private:
  using AsioReactor = boost::asio::detail::epoll_reactor;

  /// One of the two things to wait for.
  class Wait : public boost::asio::detail::reactor_op {
   public:
    Wait(EdgeSocket& socket, void (Watcher::*tell)());
    EdgeSocket& socket;
    void (Watcher::*const tell)();
    boost::intrusive_ptr<Connection> waiting;  // the connection, while this is under way

   private:
    static status Perform(reactor_op* op) noexcept;
    static void Complete(void* owner, boost::asio::detail::operation* op,
                         const boost::system::error_code& error, std::size_t size);
  };

  void Begin(Wait& wait, int kind);

  AsioReactor& reactor_;
  AsioReactor::per_descriptor_data registration_ = nullptr;
  int fd_ = -1;
  bool tells_more_ = false;  // the kernel says whether there is more
  bool more_ = false;
  Connection& connection_;
  Watcher& watcher_;
  Wait readable_{*this, &Watcher::OnReadable};
  Wait writable_{*this, &Watcher::OnWritable};
};

}  // namespace weir::net
