#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "net/tls.h"
#include "net/transport.h"

namespace weir::net {

/// TLS on top of another transport: carries plain bytes to and from a peer, encrypted. Either side
/// of a connection; the handshake continues with each Receive. A step of it takes a millisecond, so
/// connections in a handshake take turns, and an established one waits for at most one of them.
///
/// Thread safety: belongs to its reactor's thread.
class TlsTransport final : public Transport, private Transport::Watcher {
 public:
  TlsTransport(std::unique_ptr<Transport> carrier, std::unique_ptr<TlsSession> tls);

  void Attach(Counted& owner, Transport::Watcher& watcher) noexcept override;
  bool is_open() const noexcept override { return carrier_->is_open(); }
  bool ready() const noexcept override { return tls_->established(); }
  bool flushed() const noexcept override { return cipher_.empty(); }
  std::string failure() const override;
  bool secure() const noexcept override { return true; }
  std::string peer_name() const override { return tls_->peer_name(); }

  Received Receive(std::span<char> space) noexcept override;
  bool more() const noexcept override { return left_ || carrier_->more(); }
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
  void OnReadable() override;
  void OnWritable() override;
  void OnTurn() override;

  bool Decrypt(std::span<char> space, std::size_t& size);
  bool Flush();
  Received Broken() noexcept;
  bool Feed(std::string_view cipher);

  const std::unique_ptr<Transport> carrier_;
  const std::unique_ptr<TlsSession> tls_;
  Transport::Watcher* watcher_ = nullptr;
  std::string failure_;
  std::string cipher_;    // encrypted, and not yet taken by the carrier
  std::size_t sent_ = 0;  // of cipher_
  bool left_ = false;     // TLS holds bytes or an error that the carrier does not signal
  bool broken_ = false;
  bool closing_ = false;
  bool shut_down_ = false;       // our side is over once cipher_ is sent
  bool await_readable_ = false;  // by a turn
  bool await_writable_ = false;
  bool await_turn_ = false;
};

/// Makes the transport of an accepted socket: TLS if `tls` is not null. Returns null, and logs why,
/// if that cannot start.
std::unique_ptr<Transport> Carry(Socket socket, Reactor& reactor, TlsContext* tls);

}  // namespace weir::net
