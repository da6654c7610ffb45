#pragma once

// A connection's socket with as few system calls as possible: one receive for the available bytes,
// one send for the answers. Asio's own reads always try once more and find nothing, since an edge
// is reported only once; here the kernel says with each receive whether there is more (TCP_INQ), so
// the socket waits for the next edge right away. It waits in the reactor's own epoll, beside all
// else that asio watches, through the interface that asio's sockets use themselves (see
// docs/adr/0004-sockets-on-edges.md).

#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/detail/reactor_op.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <span>
#include <string_view>

#include "net/connection.h"
#include "net/transport.h"
#include "net/turns.h"

namespace weir::net {

/// Thread safety: belongs to its reactor's thread.
class EdgeSocket final : public Transport {
 public:
  /// Takes over the descriptor of `socket`. Not open if that failed.
  EdgeSocket(Socket socket, Reactor& reactor);
  ~EdgeSocket() override;
  EdgeSocket(const EdgeSocket&) = delete;
  EdgeSocket& operator=(const EdgeSocket&) = delete;

  void Attach(Counted& owner, Watcher& watcher) noexcept override;
  bool is_open() const noexcept override { return fd_ >= 0; }
  Received Receive(std::span<char> space) noexcept override;
  bool more() const noexcept override { return more_; }
  using Transport::Send;
  std::ptrdiff_t Send(std::string_view bytes, std::string_view rest) noexcept override;
  void AwaitReadable() override;
  void AwaitWritable() override;
  void AwaitTurn() override;
  void AwaitSpare() override;
  bool ShutDownSend() noexcept override;
  void Close() noexcept override;
  void Reset() noexcept override;

 private:
  using AsioReactor = boost::asio::detail::epoll_reactor;

  /// One of the things to wait for.
  class Wait : public boost::asio::detail::reactor_op {
   public:
    Wait(EdgeSocket& socket, void (Watcher::*tell)());
    EdgeSocket& socket;
    void (Watcher::*const tell)();
    boost::intrusive_ptr<Counted> waiting;  // the owner, while this is under way

   private:
    static status Perform(reactor_op* op) noexcept;
    static void Complete(void* owner, boost::asio::detail::operation* op,
                         const boost::system::error_code& error, std::size_t size);
  };

  void Begin(Wait& wait, int kind);

  AsioReactor& reactor_;
  Turns& turns_;
  AsioReactor::per_descriptor_data registration_ = nullptr;
  int fd_ = -1;
  bool tells_more_ = false;  // the kernel says whether there is more
  bool more_ = false;
  /// Something was received and nothing sent since. The kernel does not say whether a reset came
  /// with it, and no edge will: sending would fail, so only waiting has to check once more.
  bool unsure_ = false;
  Counted* owner_ = nullptr;
  Watcher* watcher_ = nullptr;
  Wait readable_{*this, &Watcher::OnReadable};
  Wait writable_{*this, &Watcher::OnWritable};
  Wait turn_{*this, &Watcher::OnTurn};
};

}  // namespace weir::net
