// After `101 Switching Protocols` the proxy reads nothing any more: bytes pass both ways until both
// sides have finished or nothing has moved for long.

#include "proxy/session.h"
#include "proxy/transmit.h"

namespace weir::proxy {

using boost::system::error_code;

void Session::BeginTunnel() {
  Count(shared_.stats.tunnels);
  phase_ = Phase::kTunnel;
  client_done_ = upstream_done_ = false;
  head_down_.clear();
  Touch(shared_.options.timeouts.tunnel);
  PumpTunnelUp();
  if (phase_ == Phase::kTunnel) PumpTunnelDown();
}

void Session::PumpTunnelUp() {
  while (!in_.empty()) {
    const Sent sent = Transmit(upstream_->socket().native_handle(), in_.view(), {});
    if (sent.blocked) return upstream_->WaitWritable();
    if (sent.failed) return Close();
    in_.Consume(sent.bytes);
    Count(shared_.stats.bytes_up, sent.bytes);
  }
  if (!client_done_) return ReadClient();
  error_code ignored;
  upstream_->socket().shutdown(net::Socket::shutdown_send, ignored);
  FinishTunnelHalf();
}

void Session::PumpTunnelDown() {
  Buffer& buffer = upstream_->buffer();
  while (!buffer.empty()) {
    const Sent sent = Transmit(client_.native_handle(), buffer.view(), {});
    if (sent.blocked) return WaitClientWritable();
    if (sent.failed) return Close();
    buffer.Consume(sent.bytes);
    Count(shared_.stats.bytes_down, sent.bytes);
  }
  if (!upstream_done_) return upstream_->Read();
  error_code ignored;
  client_.shutdown(net::Socket::shutdown_send, ignored);
  FinishTunnelHalf();
}

void Session::FinishTunnelHalf() {
  const bool sent_all = in_.empty() && upstream_->buffer().empty();
  if (client_done_ && upstream_done_ && sent_all) Close();
}

}  // namespace weir::proxy
