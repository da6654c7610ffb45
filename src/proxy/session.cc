#include "proxy/session.h"

#include <utility>

#include "filter/headers.h"
#include "proxy/transmit.h"

namespace weir::proxy {

namespace {

constexpr std::size_t kHeadBuffer = std::size_t{8} * 1024;
/// How much a client may still send after our last answer before we close the connection.
constexpr std::size_t kMaxLinger = std::size_t{16} * 1024 * 1024;
/// Requests of one client that are answered immediately before others have their turn.
constexpr int kServedAtOnce = 16;
/// A keep-alive client may have sent a request just before it learns that we are shutting down.
constexpr std::chrono::milliseconds kDrainGrace{500};

}  // namespace

Session::Session(net::Reactor& reactor, std::unique_ptr<net::Transport> client,
                 const IpAddress& peer, Shared& shared)
    : Connection(reactor),
      shared_(shared),
      client_(std::move(client)),
      in_(kHeadBuffer),
      peer_(peer.ToString()),
      identity_(ClientKey(peer, shared.options.grouping)),
      trusted_(ContainsAddress(shared.options.trusted_proxies, peer)) {
  client_->Attach(*this, *this);
}

void Session::Start() {
  if (!client_->is_open()) return;
  Touch(shared_.options.timeouts.header);
  ReadClient();
}

/// A client that has sent more than one read takes yields to the others.
void Session::ReadClient() {
  client_reading_ = true;
  client_->more() ? client_->AwaitTurn() : client_->AwaitReadable();
}

void Session::OnReadable() {
  if (!std::exchange(client_reading_, false)) return;
  char* const space = in_.space();
  const net::Transport::Received received = client_->Receive({space, in_.space_size()});
  if (received.outcome == Outcome::kNothing) return ReadClient();
  in_.Commit(received.size);
  OnClientRead(received.outcome);
}

void Session::ReadToDiscard() {
  client_reading_ = true;
  client_->AwaitSpare();
}

void Session::OnTurn() {
  if (phase_ == Phase::kLinger) return client_->AwaitReadable();
  if (std::exchange(pump_later_, false)) return PumpTunnelUp();
  std::exchange(serve_later_, false) ? Serve() : OnReadable();
}

void Session::OnClientRead(Outcome outcome) {
  const bool over = outcome != Outcome::kBytes;
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kHead:
      if (over) return Close();
      return Serve();
    case Phase::kExchange:
      // The body will never be complete, so neither client nor upstream can do anything with it.
      if (over) return Close();
      return PumpRequest();
    case Phase::kTunnel:
      if (outcome == Outcome::kBroken) return Close();
      client_done_ = client_done_ || over;
      OnTunnelMoved();
      return PumpTunnelUp();
    case Phase::kLinger:
      lingered_ += in_.view().size();
      reactor().turns().Spend(in_.view().size());
      in_.Consume(in_.view().size());
      if (outcome == Outcome::kEnd && !client_->flushed()) return;  // the client may still read
      if (over || lingered_ > kMaxLinger) return Close();
      return ReadToDiscard();
    default:
      if (over) Close();
  }
}

void Session::Serve() {
  // A request that is answered immediately returns here for the next one: a loop, since a client
  // decides how many requests it sends at once, and so would decide how deep we recurse.
  serve_again_ = true;
  if (serving_ || serve_later_) return;
  serving_ = true;
  for (int served = 0; serve_again_ && served < kServedAtOnce; ++served) {
    serve_again_ = false;
    ServeOne();
  }
  serving_ = false;
  serve_later_ = serve_again_;
  if (serve_later_) client_->AwaitTurn();
}

void Session::ServeOne() {
  const http::HeadResult result =
      http::ParseRequestHead(in_.view(), shared_.options.limits, request_);
  if (result.failed()) {
    Count(shared_.stats.rejected);
    exchange_ = {};
    in_.Consume(in_.view().size());
    return Reply(
        {.status = result.error_status,
         .content_type = "application/json",
         .body = filter::ErrorJson(result.error_status, result.error, SystemClock::Get().Now())},
        true);
  }
  if (!result.complete()) return AwaitHead();
  head_size_ = result.size;
  Count(shared_.stats.requests);
  BeginTrace();
  Decide();
}

void Session::AwaitHead() {
  const Timeouts& timeouts = shared_.options.timeouts;
  if (in_.empty()) {
    phase_ = Phase::kIdle;
    in_.Resize(kHeadBuffer);
    Touch(reactor().draining() ? kDrainGrace : timeouts.idle);
  } else {
    // Counted from the first byte: a head that trickles in does not extend its deadline.
    if (phase_ != Phase::kHead) Touch(timeouts.header);
    phase_ = Phase::kHead;
    if (in_.space_size() == 0) in_.Resize(shared_.options.limits.bytes + kHeadBuffer);
  }
  ReadClient();
}

void Session::Fail(int status, std::string_view message) {
  const bool under_way = phase_ == Phase::kConnecting || phase_ == Phase::kExchange;
  DropUpstream();
  if (under_way && exchange_.started) return Close();
  // What was read of the request and not sent is skipped; a client that is still sending must stop.
  const bool request_read = under_way && request_body_.done();
  if (request_read) in_.Consume(exchange_.body_up);
  const std::string body = filter::ErrorJson(status, message, SystemClock::Get().Now());
  Reply({.status = status, .content_type = "application/json", .body = body},
        !request_read || exchange_.close);
}

void Session::Reply(const OwnResponse& response, bool close) {
  phase_ = Phase::kReply;
  reply_close_ = close || reactor().draining();
  OwnResponse own = response;
  own.head_only = exchange_.to_head;
  head_down_.erase(0, exchange_.head_down_sent);
  exchange_.head_down_sent = 0;
  WriteOwnResponse(own, {reply_close_, exchange_.http10}, head_down_);
  EndTrace(response.status);
  if (held_ != nullptr) return ReleaseThen(Phase::kReply);
  Touch(shared_.options.timeouts.stall);
  FlushReply();
}

void Session::FlushReply() {
  const Sent sent =
      Transmit(*client_, std::string_view(head_down_).substr(exchange_.head_down_sent), {});
  if (sent.failed) return Close();
  exchange_.head_down_sent += sent.bytes;
  if (exchange_.head_down_sent < head_down_.size()) return client_->AwaitWritable();
  head_down_.clear();
  exchange_.head_down_sent = 0;
  if (reply_close_) return Linger();
  phase_ = Phase::kIdle;
  Serve();
}

void Session::Linger() {
  phase_ = Phase::kLinger;
  client_->ShutDownSend();
  in_.Consume(in_.view().size());
  ReadToDiscard();
  // With TLS, sent bytes may still be buffered: a slow client gets the same time as elsewhere.
  if (client_->flushed()) return Touch(shared_.options.timeouts.linger);
  Touch(shared_.options.timeouts.stall);
  client_->AwaitWritable();
}

void Session::Close() {
  if (phase_ == Phase::kClosed) return;
  const Ptr self(this);  // the upstream's connection may hold the last reference
  const bool cut_off =
      phase_ == Phase::kExchange && exchange_.started && response_body_.until_close();
  phase_ = Phase::kClosed;
  EndTrace(0);
  DropUpstream();
  ReleasePermits();
  // Where a response ends with the connection, the client would take this for the response's end.
  if (cut_off) client_->Reset();
  client_->Close();
  reactor().timers().Cancel(*this);
}

void Session::OnWritable() {
  switch (phase_) {
    case Phase::kReply:
      return FlushReply();
    case Phase::kExchange:
      return PumpResponse();
    case Phase::kTunnel:
      return PumpTunnelDown();
    case Phase::kLinger:
      return client_reading_ ? Touch(shared_.options.timeouts.linger) : Close();
    default:
      return;
  }
}

void Session::Drain() {
  if (phase_ == Phase::kIdle) Touch(kDrainGrace);
  if (phase_ == Phase::kTunnel) Touch(shared_.options.timeouts.linger);
}

void Session::Abort() { Close(); }

void Session::OnDeadline() {
  const Ptr self(this);
  switch (phase_) {
    case Phase::kIdle:
      return reactor().draining() || !client_->flushed() ? Linger() : Close();
    case Phase::kHead:
      Count(shared_.stats.rejected);
      exchange_ = {};
      return Fail(408, "the request did not arrive in time");
    case Phase::kDeciding:
      // The store has a time limit of its own, and until it has answered the limiter may look at
      // the request's head: it must not be overwritten by a read.
      return Touch(shared_.options.timeouts.stall);
    case Phase::kReleasing:
      // The store has not confirmed it in time; the client has waited long enough.
      return OnReleased();
    case Phase::kConnecting:
      return OnUpstreamConnected(
          Error{Code::kDeadlineExceeded, "the upstream did not accept a connection in time"});
    case Phase::kExchange:
      if (!exchange_.started && client_reading_) {
        Count(shared_.stats.rejected);
        return Fail(408, "the request body did not arrive in time");
      }
      if (exchange_.client_behind) {
        Count(shared_.stats.rejected);
        return Close();
      }
      return OnUpstreamStalled();
    default:
      return Close();
  }
}

}  // namespace weir::proxy
