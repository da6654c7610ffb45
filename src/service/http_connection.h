#pragma once

// Moves bytes between a socket and an HttpSession, through TLS if the door has it.

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "net/connection.h"
#include "net/edge_socket.h"
#include "net/tls.h"
#include "service/http_session.h"

namespace weir::service {

/// One client's connection. Kept alive by what it waits for.
///
/// Thread safety: belongs to its reactor's thread.
class HttpConnection final : public net::Connection,
                             private HttpSession::Transport,
                             private net::EdgeSocket::Watcher {
 public:
  /// `tls` null: in the clear.
  HttpConnection(HttpWorker& worker, net::Socket socket, std::unique_ptr<net::TlsSession> tls,
                 std::string remote);

  /// Begins to serve.
  void Start();
  void Drain() override;
  void Abort() override { Close(); }
  void OnDeadline() override;

 private:
  // What the client is expected to do, and so which time limit runs.
  enum class Phase { kIdle, kRequest, kAnswer, kLinger, kClosed };

  boost::intrusive_ptr<net::Connection> Self() override { return this; }
  void Resume() override;
  void OnReadable() override;
  void OnWritable() override;

  void Expect(std::chrono::milliseconds time) { reactor().timers().Set(*this, time); }
  bool Receive();
  bool ReceiveTls();
  bool Decrypt();
  void GoOn();
  void Await();
  void AwaitRequest();
  void Write();
  void Encrypt();
  bool SendHeld();
  void OnWritten();
  void Linger();
  void Discard();
  void Close();

  HttpWorker& worker_;
  net::EdgeSocket socket_;
  const std::unique_ptr<net::TlsSession> tls_;
  HttpSession session_;
  std::string held_;      // what the socket did not take at once
  std::size_t sent_ = 0;  // of held_
  std::size_t lingered_ = 0;
  Phase phase_ = Phase::kIdle;
};

}  // namespace weir::service
