// After `101 Switching Protocols` bytes pass both ways until both sides have finished or nothing
// has moved for long. If the messages of WebSocket clients are counted, each waits until the
// limiter has let it pass; one that is over its limit ends the connection.

#include "proxy/later_check.h"
#include "proxy/session.h"
#include "proxy/transmit.h"

namespace weir::proxy {
namespace {

constexpr std::string_view kWebSocket = "websocket";

/// Messages of one client that pass before others have their turn: each takes a check and a call
/// of the kernel, and thousands fit into one read.
constexpr int kMessagesAtOnce = 32;

}  // namespace

void Session::BeginTunnel() {
  Count(shared_.stats.tunnels);
  EndTrace(response_.status);
  phase_ = Phase::kTunnel;
  client_done_ = upstream_done_ = false;
  head_down_.clear();
  // Several protocols may have been offered; what the upstream has chosen counts.
  const http::Field* const chosen = response_.Find(http::FieldId::kUpgrade);
  if (chosen == nullptr || !http::ListHas(chosen->value, kWebSocket)) messages_.reset();
  Touch(reactor().draining() ? shared_.options.timeouts.linger : shared_.options.timeouts.tunnel);
  PumpTunnelUp();
  if (phase_ == Phase::kTunnel) PumpTunnelDown();
}

/// Once the proxy is shutting down, traffic no longer earns a tunnel more time.
void Session::OnTunnelMoved() {
  if (!reactor().draining()) Touch(shared_.options.timeouts.tunnel);
}

/// Keeps what is needed to check messages, while the request's head is still there.
void Session::PrepareMessages() {
  messages_.reset();
  message_check_.reset();
  const ProxyOptions& options = shared_.options;
  if (!options.websocket_messages || shared_.limiter == nullptr) return;
  if (!http::ListHas(upgrade_, kWebSocket)) return;
  messages_ = std::make_unique<WebSocketScanner>();
  policy::Request request = check_.request;
  request.domain = kMessageDomain;
  request.subjects = {};
  request.default_applies = false;
  message_check_ = std::make_shared<LaterCheck>(request);
  message_check_->check.origin.door = "proxy";
}

/// How many of the client's bytes may go to the upstream now.
std::size_t Session::Sendable() {
  if (messages_ == nullptr) return in_.view().size();
  if (exchange_.body_up == 0) exchange_.body_up = messages_->Take(in_.view());
  return exchange_.body_up;
}

/// True: the message was allowed immediately. Else the answer comes later, or the tunnel is over.
bool Session::AskAboutMessage() {
  asking_ = pumping_ = true;
  const std::shared_ptr<LaterCheck> asked = message_check_;
  shared_.limiter->Decide({&asked->check, 1},
                          [asked, self = Ptr(this)] { self->OnMessageDecided(); });
  pumping_ = false;
  return !asking_ && phase_ == Phase::kTunnel;
}

void Session::OnMessageDecided() {
  asking_ = false;
  if (phase_ != Phase::kTunnel) return;
  const limiter::Check& check = message_check_->check;
  if (!check.status.ok() || !check.decision.allowed()) return Close();
  Count(shared_.stats.messages);
  messages_->Admit();
  // A store that answers at once is asked in a loop: a client decides how many messages it sends
  // together, and so would decide how deep we recurse.
  if (!pumping_) PumpTunnelUp();
}

void Session::PumpTunnelUp() {
  if (asking_ || pump_later_) return;
  int asked = 0;
  do {
    while (const std::size_t sendable = in_.empty() ? 0 : Sendable()) {
      const Sent sent = Transmit(upstream_->transport(), in_.view().substr(0, sendable), {});
      if (sent.blocked) return upstream_->transport().AwaitWritable();
      if (sent.failed) return Close();
      in_.Consume(sent.bytes);
      if (messages_ != nullptr) exchange_.body_up -= sent.bytes;
      Count(shared_.stats.bytes_up, sent.bytes);
    }
    if (messages_ != nullptr && messages_->failed()) return Close();
    if (asked++ == kMessagesAtOnce && !in_.empty()) {
      pump_later_ = true;
      return client_->AwaitTurn();
    }
    if (!in_.empty() && !AskAboutMessage()) return;
  } while (!in_.empty());
  if (!client_done_) return ReadClient();
  if (!upstream_->transport().flushed()) return upstream_->transport().AwaitWritable();
  upstream_->transport().ShutDownSend();
  FinishTunnelHalf();
}

void Session::PumpTunnelDown() {
  Buffer& buffer = upstream_->buffer();
  while (!buffer.empty()) {
    const Sent sent = Transmit(*client_, buffer.view(), {});
    if (sent.blocked) return client_->AwaitWritable();
    if (sent.failed) return Close();
    buffer.Consume(sent.bytes);
    Count(shared_.stats.bytes_down, sent.bytes);
  }
  if (!upstream_done_) return upstream_->Read();
  if (!client_->flushed()) return client_->AwaitWritable();
  client_->ShutDownSend();
  FinishTunnelHalf();
}

void Session::FinishTunnelHalf() {
  const bool sent_all = in_.empty() && upstream_->buffer().empty();
  if (client_done_ && upstream_done_ && sent_all) Close();
}

}  // namespace weir::proxy
