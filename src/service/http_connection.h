#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/connection.h"
#include "net/stream.h"
#include "net/transport.h"
#include "service/http_session.h"

namespace weir::service {

/// One client's connection: an HttpSession on a Stream. Kept alive by what it waits for.
///
/// Thread safety: belongs to its reactor's thread.
class HttpConnection final : public net::Connection,
                             private HttpSession::Transport,
                             private net::Stream::Session {
 public:
  /// `urgent`: one beyond the limit, for one question that must always be
  /// answered.
  HttpConnection(HttpWorker& worker, std::unique_ptr<net::Transport> transport, std::string remote,
                 bool urgent = false);
  ~HttpConnection() override;

  void Start() { stream_.Start(); }
  void Drain() override;
  void Abort() override { stream_.Close(); }
  void OnDeadline() override {}

 private:
  // HttpSession::Transport
  boost::intrusive_ptr<net::Connection> Self() override { return this; }
  void Resume() override { stream_.Wake(); }

  // net::Stream::Session
  std::span<char> Space() override { return session_.Space(); }
  void Received(std::size_t size) override {
    if (!std::exchange(named_, true)) session_.SetSubject(transport_->peer_name());
    session_.Received(size);
  }
  void EndOfInput() override { session_.EndOfInput(); }
  net::Stream::Next Advance() override;
  net::Stream::Next Finish();
  std::string_view Output() const override { return session_.Output(); }
  void Sent(std::size_t size) override {
    if (!session_.Sent(size)) stream_.Close();
  }
  net::Stream::Stage stage() const override;
  bool OnTimeout(net::Stream::Stage stage) override;

  HttpWorker& worker_;
  HttpSession session_;
  const std::unique_ptr<net::Transport> transport_;
  net::Stream stream_;
  bool named_ = false;     // the peer's certificate was looked at
  bool in_parts_ = false;  // a request did not come in one piece
};

}  // namespace weir::service
