#include <utility>

#include "proxy/session.h"
#include "proxy/transmit.h"

namespace weir::proxy {

namespace {

/// For long bodies: fewer, larger reads and writes.
constexpr std::size_t kBodyBuffer = std::size_t{64} * 1024;
constexpr int kMaxAttempts = 3;

/// How much of `head` and of the body was sent, given that the head goes first.
void Advance(std::size_t sent, std::string_view head, std::size_t& head_sent, std::size_t& body) {
  const std::size_t of_head = std::min(sent, head.size() - head_sent);
  head_sent += of_head;
  body -= sent - of_head;
}

}  // namespace

void Session::BeginExchange() {
  exchange_.close = request_.close;
  request_body_.Start(request_.framing(), http::BodyScanner::Trailers::kSkip);
  upgrade_.clear();
  // A request for an upgrade that is not offered is forwarded like any other, as in HTTP.
  if (request_body_.done() && request_.method == "GET" && request_.minor_version == 1) {
    upgrade_ = OfferedUpgrades(request_, shared_.options.upgrades);
  }
  exchange_.upgrade = !upgrade_.empty();
  exchange_.retryable = request_.idempotent() && request_body_.done() && !exchange_.upgrade;
  const telemetry::TraceHeader header = telemetry::ToHeader(trace_);
  const std::string_view traceparent(header.data(), trace_.sampled ? header.size() : 0);
  WriteRequestHead(request_, {peer_, trusted_, upgrade_, client_->secure(), traceparent}, head_up_);
  if (exchange_.upgrade) PrepareMessages();
  head_down_.clear();
  in_.Consume(head_size_);
  AcquireUpstream(false);
}

void Session::AcquireUpstream(bool fresh) {
  ++exchange_.attempts;
  upstream_ = shared_.pool.Take(fresh);
  upstream_->Attach(*this, this);
  if (upstream_->open()) return SendRequest();
  phase_ = Phase::kConnecting;
  Touch(shared_.options.timeouts.connect);
  upstream_->Connect(shared_.pool.upstream(upstream_->target()),
                     shared_.options.upstream_tls.get());
}

void Session::OnUpstreamConnected(const Status& connected) {
  if (connected.ok()) return SendRequest();
  const Error& error = connected.error();
  NoteUpstreamFailed(error.message);
  shared_.pool.MarkDown(upstream_->target());
  const bool others = static_cast<std::size_t>(exchange_.attempts) < shared_.pool.size();
  DropUpstream();
  if (others && exchange_.attempts < kMaxAttempts) return AcquireUpstream(false);
  const bool timed_out = error.code == Code::kDeadlineExceeded;
  Count(timed_out ? shared_.stats.upstream_timeouts : shared_.stats.upstream_errors);
  if (timed_out) return Fail(504, error.message);
  Fail(502, "no connection to the upstream: " + error.message);
}

void Session::SendRequest() {
  phase_ = Phase::kExchange;
  exchange_.head_up_sent = 0;
  Touch(shared_.options.timeouts.stall);
  const UpstreamPtr upstream = upstream_;
  PumpRequest();
  if (upstream == upstream_) upstream->Read();
}

void Session::PumpRequest() {
  while (!exchange_.request_done && !exchange_.request_broken) {
    if (exchange_.body_up == 0 && !in_.empty()) {
      in_.Consume(request_body_.SkipTrailers(in_.view()));
      exchange_.body_up = request_body_.Take(in_.view());
      if (request_body_.failed()) {
        Count(shared_.stats.rejected);
        return Fail(400, "the chunked body is malformed");
      }
    }
    const std::string_view head = std::string_view(head_up_).substr(exchange_.head_up_sent);
    if (head.empty() && exchange_.body_up == 0) {
      if (!request_body_.done()) {
        if (request_body_.expected() > in_.capacity()) in_.Resize(kBodyBuffer);
        return ReadClient();
      }
      exchange_.request_done = true;
      break;
    }
    const std::size_t before = exchange_.body_up;
    const Sent sent =
        Transmit(upstream_->transport(), head, in_.view().substr(0, exchange_.body_up));
    if (sent.blocked) return upstream_->transport().AwaitWritable();
    // It may have answered already (413, say) and closed; reading will show.
    if (sent.failed) {
      exchange_.request_broken = true;
      break;
    }
    Advance(sent.bytes, head_up_, exchange_.head_up_sent, exchange_.body_up);
    in_.Consume(before - exchange_.body_up);
    Count(shared_.stats.bytes_up, sent.bytes);
    OnBodyMoved(sent.bytes);
  }
}

/// A body that trickles in earns no time: a client could hold an upstream's connection forever.
void Session::OnBodyMoved(std::size_t bytes) {
  exchange_.body_moved += bytes;
  if (exchange_.body_moved < kMinBodyPace && !request_body_.done()) return;
  exchange_.body_moved = 0;
  Touch(shared_.options.timeouts.stall);
}

void Session::OnUpstreamWritable() {
  if (phase_ == Phase::kTunnel) return PumpTunnelUp();
  if (phase_ == Phase::kExchange) PumpRequest();
}

void Session::OnUpstreamRead(Outcome outcome) {
  if (phase_ == Phase::kTunnel) {
    if (outcome == Outcome::kBroken) return Close();
    upstream_done_ = upstream_done_ || outcome == Outcome::kEnd;
    OnTunnelMoved();
    return PumpTunnelDown();
  }
  if (phase_ != Phase::kExchange) return;
  if (outcome != Outcome::kBytes) return OnResponseTruncated(outcome);
  Touch(shared_.options.timeouts.stall);
  PumpResponse();
}

bool Session::Retryable() const noexcept {
  const bool unheard = upstream_->buffer().empty() && head_down_.empty();
  const bool harmless = exchange_.retryable || exchange_.head_up_sent == 0;
  return upstream_->reused && unheard && harmless && exchange_.attempts < kMaxAttempts;
}

void Session::OnResponseTruncated(Outcome outcome) {
  if (exchange_.started) {
    if (!response_body_.until_close() || outcome == Outcome::kBroken) {
      NoteUpstreamError("the upstream closed the connection within a response");
      return Close();
    }
    response_body_.Start({});
    return PumpResponse();
  }
  if (Retryable()) {
    // It closed an idle connection just when we used it; it has not seen the request.
    Count(shared_.stats.retries);
    DropUpstream();
    exchange_.request_done = exchange_.request_broken = false;
    return AcquireUpstream(true);
  }
  constexpr std::string_view kClosed = "the upstream closed the connection before it answered";
  NoteUpstreamError(kClosed);
  Fail(502, kClosed);
}

void Session::OnUpstreamStalled() {
  Count(shared_.stats.upstream_timeouts);
  constexpr std::string_view kLate = "the upstream did not answer in time";
  NoteUpstreamFailed(kLate);
  Fail(504, kLate);
}

void Session::NoteUpstreamFailed(std::string_view reason) {
  shared_.pool.upstream(upstream_->target()).health->NoteFailure(reason);
}

void Session::NoteUpstreamError(std::string_view reason) {
  Count(shared_.stats.upstream_errors);
  NoteUpstreamFailed(reason);
}

bool Session::ReadResponseHead() {
  Buffer& buffer = upstream_->buffer();
  const http::HeadResult result =
      http::ParseResponseHead(buffer.view(), shared_.options.limits, response_);
  if (result.failed()) {
    const std::string why = std::string("the upstream's response is malformed: ") + result.error;
    NoteUpstreamError(why);
    Fail(502, why);
    return false;
  }
  if (!result.complete()) {
    if (buffer.space_size() == 0) buffer.Resize(shared_.options.limits.bytes + buffer.capacity());
    upstream_->Read();
    return false;
  }
  const bool upgraded = response_.status == 101;
  if (upgraded && !(exchange_.upgrade && ChoosesUpgrade(response_, upgrade_))) {
    constexpr std::string_view kUnasked = "the upstream switched protocols without being asked to";
    NoteUpstreamError(kUnasked);
    Fail(502, kUnasked);
    return false;
  }
  if (response_.status < 200 && !upgraded) {
    OnInterim();
  } else {
    OnFinalHead();
  }
  buffer.Consume(result.size);
  return true;
}

void Session::OnInterim() {
  // HTTP/1.0 has no interim responses. An endless series of them is not stored either.
  constexpr std::size_t kMaxInterim = std::size_t{64} * 1024;
  if (!exchange_.http10 && head_down_.size() < kMaxInterim) {
    WriteResponseHead(response_, {}, {}, head_down_);
  }
}

void Session::OnFinalHead() {
  const http::Framing framing = response_.framing(exchange_.to_head);
  exchange_.started = true;
  shared_.pool.upstream(upstream_->target()).health->NoteResponse();
  exchange_.reusable = !response_.close && !exchange_.http10 && !exchange_.upgrade &&
                       framing.kind != http::Framing::Kind::kUntilClose;
  exchange_.close = exchange_.close || reactor().draining() || !exchange_.request_done ||
                    framing.kind == http::Framing::Kind::kUntilClose;
  response_body_.Start(framing);
  WriteResponseHead(response_, limit_lines_, {exchange_.close, exchange_.http10}, head_down_);
  if (response_body_.expected() > upstream_->buffer().capacity()) {
    upstream_->buffer().Resize(kBodyBuffer);
  }
}

void Session::PumpResponse() {
  while (true) {
    Buffer& buffer = upstream_->buffer();
    const std::string_view head = std::string_view(head_down_).substr(exchange_.head_down_sent);
    if (!exchange_.started && head.empty() && !buffer.empty()) {
      head_down_.clear();
      exchange_.head_down_sent = 0;
      if (!ReadResponseHead()) return;
      continue;
    }
    if (exchange_.started && exchange_.body_down == 0 && !buffer.empty()) {
      exchange_.body_down = response_body_.Take(buffer.view());
      if (response_body_.failed()) {
        NoteUpstreamError("the upstream's chunked body is malformed");
        return Close();
      }
    }
    const bool last = exchange_.started && response_body_.done() && response_.status != 101;
    if (last && held_ != nullptr) return ReleaseThen(Phase::kExchange);
    if (head.empty() && exchange_.body_down == 0) {
      if (!exchange_.started || !response_body_.done()) return upstream_->Read();
      if (response_.status == 101) return BeginTunnel();
      return FinishExchange();
    }
    const std::size_t before = exchange_.body_down;
    const Sent sent = Transmit(*client_, head, buffer.view().substr(0, exchange_.body_down));
    exchange_.client_behind = sent.blocked;
    if (sent.blocked) return client_->AwaitWritable();
    if (sent.failed) return Close();
    Advance(sent.bytes, head_down_, exchange_.head_down_sent, exchange_.body_down);
    buffer.Consume(before - exchange_.body_down);
    Count(shared_.stats.bytes_down, sent.bytes);
    OnResponseMoved(sent.bytes);
  }
}

/// A client that takes a response a little at a time earns no time either, until it has taken
/// everything that is available.
void Session::OnResponseMoved(std::size_t bytes) {
  exchange_.response_moved += bytes;
  const bool all = exchange_.head_down_sent == head_down_.size() && exchange_.body_down == 0;
  if (exchange_.response_moved < kMinBodyPace && !all) return;
  exchange_.response_moved = 0;
  Touch(shared_.options.timeouts.stall);
}

void Session::FinishExchange() {
  EndTrace(response_.status);
  head_down_.clear();
  exchange_.head_down_sent = 0;
  if (exchange_.request_done && exchange_.reusable && upstream_->at_rest()) {
    upstream_->Detach();
    shared_.pool.Return(std::exchange(upstream_, nullptr));
  } else {
    DropUpstream();
  }
  if (exchange_.close || !exchange_.request_done) return Linger();
  phase_ = Phase::kIdle;
  Serve();
}

void Session::DropUpstream() {
  if (upstream_ == nullptr) return;
  upstream_->Detach();
  upstream_->Close();
  upstream_.reset();
}

}  // namespace weir::proxy
