#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "net/connection.h"
#include "net/stream.h"
#include "net/transport.h"
#include "service/http_session.h"

namespace weir::service {

/// One client's connection: an HttpSession on a Stream. Kept alive by what it waits for.
///
/// Thread safety: belongs to its reactor's thread.
class HttpConnection final : public net::Connection, private HttpSession::Transport {
 public:
  /// `urgent`: a connection beyond the limit, for one request that must always be
  /// answered.
  HttpConnection(HttpWorker& worker, std::unique_ptr<net::Transport> transport, std::string remote,
                 bool urgent = false);
  ~HttpConnection() override { worker_.RemoveUrgent(*this); }

  void Start() { stream_.Start(); }
  /// A client may just be sending a request on an idle connection, so it gets a grace period.
  void Drain() override { stream_.Drain(std::chrono::milliseconds(500)); }
  void Abort() override { stream_.Close(); }
  void OnDeadline() override {}

 private:
  void Resume() override { stream_.Wake(); }
  void ResumeLater() override { stream_.WakeLater(); }
  boost::intrusive_ptr<net::Connection> Self() override { return this; }
  std::string PeerName() const override { return transport_->peer_name(); }
  void Close() override { stream_.Close(); }

  HttpWorker& worker_;
  HttpSession session_;
  const std::unique_ptr<net::Transport> transport_;
  net::Stream stream_;
};

}  // namespace weir::service
