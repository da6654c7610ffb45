#include "service/http_session.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "limiter/request_span.h"
#include "protocol/http/error.h"
#include "protocol/http/response_writer.h"
#include "telemetry/trace.h"
#include "telemetry/tracer.h"

namespace weir::service {
namespace {

constexpr std::size_t kSmallBuffer = std::size_t{32} << 10U;
/// While this much waits to be sent, nothing more is answered: about 200 checks in a turn.
constexpr std::size_t kMaxOutput = std::size_t{64} << 10U;

/// This many requests together have answers that are worth a large buffer.
constexpr std::size_t kBurst = 64;

/// True for paths that are answered however many connections there are.
bool AlwaysAnswered(std::string_view path) noexcept {
  return path == "/healthz" || path == "/readyz" || path == "/metrics" ||
         path.starts_with("/admin/");
}

}  // namespace

/// Carries a handler's answer back to the session's thread, once. If a handler drops its reply
/// without answering, the client gets a 500 instead of waiting forever.
///
/// Thread safety: any thread may answer or drop it.
class HttpSession::PendingReply {
 public:
  PendingReply(HttpSession& session, boost::intrusive_ptr<net::Connection> connection)
      : session_(session), connection_(std::move(connection)) {}
  PendingReply(const PendingReply&) = delete;
  PendingReply& operator=(const PendingReply&) = delete;
  ~PendingReply() {
    if (!answered_.load()) Answer(http::ErrorResponse(500, "the request was not answered"));
  }

  void Answer(http::Response response) {
    if (answered_.exchange(true)) return;
    if (session_.worker_.OnOwnThread()) {
      const boost::intrusive_ptr<net::Connection> connection = std::move(connection_);
      session_.Deliver(response);
      return;
    }
    // The reference is counted on the session's thread only, so it is moved there.
    boost::asio::post(session_.worker_.reactor().context(),
                      [&session = session_, connection = std::move(connection_),
                       response = std::move(response)] { session.Deliver(response); });
  }

 private:
  HttpSession& session_;
  boost::intrusive_ptr<net::Connection> connection_;
  std::atomic<bool> answered_{false};
};

HttpSession::HttpSession(HttpWorker& worker, Transport& transport, std::string remote, bool secure,
                         bool urgent)
    : worker_(worker),
      transport_(transport),
      remote_(std::move(remote)),
      secure_(secure),
      urgent_(urgent),
      input_(http::kBodyPadding),
      parser_(worker.options().limits, &worker.router()) {}

HttpSession::~HttpSession() {
  (void)worker_.Account(accounted_, 0);
  (void)worker_.answers().Change(unread_, 0);
  if (exchanges_ != nullptr) worker_.GiveBack(std::move(exchanges_));
}

void HttpSession::Received(std::size_t size) {
  if (!std::exchange(named_, true)) subject_ = transport_.PeerName();
  input_.Commit(size);
  received_at_ = worker_.Now();
  if (input_.capacity() != accounted_) AccountForBuffer();
}

void HttpSession::AccountForBuffer() {
  // Small requests are served however much the large ones hold: half-sent bodies must not lock
  // anyone out.
  const bool fits =
      worker_.Account(accounted_, input_.capacity()) || input_.capacity() <= kSmallBuffer;
  accounted_ = input_.capacity();
  const http::ParserLimits& limits = worker_.options().limits;
  // A chunked body is larger on the wire than its limit; chunks of a few bytes are refused.
  const bool too_large = input_.unread().size() > limits.header_bytes + 2 * limits.large_body_bytes;
  if (too_large) Fail(413, "the request is too large");
  if (!fits && !finished_) Fail(503, "too many large requests at once; try again later");
}

void HttpSession::Sent(std::size_t size) {
  sent_ += size;
  if (sent_ == output_.size()) {
    // An idle connection does not keep the memory of its largest answer.
    if (output_.capacity() > kSmallBuffer) worker_.TakeBack(output_);
    output_.clear();
    sent_ = 0;
  }
  const std::size_t unread = output_.empty() ? 0 : output_.capacity();
  if (unread == unread_) return;
  const bool fits = worker_.answers().Change(unread_, unread) || unread <= kSmallBuffer;
  unread_ = unread;
  if (!fits) transport_.Close();
}

bool HttpSession::paused() const noexcept { return output_.size() >= kMaxOutput || midway(); }

bool HttpSession::Rest() {
  if (finished_) input_.Consume(input_.unread().size());
  const bool all = input_.Shrink();
  (void)worker_.Account(accounted_, input_.capacity());
  accounted_ = input_.capacity();
  if (output_.empty()) output_.shrink_to_fit();
  return all;
}

net::Stream::Next HttpSession::Advance() {
  using Next = net::Stream::Next;
  AnswerAll();
  if (waiting_) return Next::kWait;
  if (finished_) return Finish();
  if (paused()) return Next::kAgain;
  if (!idle()) {
    in_parts_ = true;
  } else if (in_parts_) {
    in_parts_ = !Rest();
    if (in_parts_) transport_.ResumeLater();
  }
  return Next::kRead;
}

/// The memory of a large request is freed when it is answered: the client may go on sending.
net::Stream::Next HttpSession::Finish() {
  const bool large = input_.capacity() > net::InputBuffer::kSlice;  // takes more than one Rest
  if (!large || (Output().empty() && Rest())) return net::Stream::Next::kClose;
  return net::Stream::Next::kAgain;
}

net::Stream::Stage HttpSession::stage() const {
  if (midway()) return net::Stream::Stage::kBusy;
  return idle() ? net::Stream::Stage::kIdle : net::Stream::Stage::kRequest;
}

void HttpSession::AnswerAll() {
  while (!waiting_ && !finished_) {
    if (step_ == Step::kParse && !midway()) {
      if (paused()) return;
      step_ = Parse();
      if (step_ == Step::kParse && !exchanges_->full()) continue;
    }
    if (exchanges_ != nullptr && !exchanges_->empty()) {
      Decide();
      if (midway()) return;
      continue;
    }
    const Step step = std::exchange(step_, Step::kParse);
    if (step == Step::kNeedMore) return AfterAll();
    if (step == Step::kRoute) Route();
    if (step == Step::kFail) Fail(parser_.failure_status(), parser_.failure_message());
  }
}

HttpSession::Step HttpSession::Parse() {
  if (last_request_ || input_.empty()) return Step::kNeedMore;
  switch (parser_.Parse(input_.unread())) {
    case http::RequestParser::Outcome::kNeedMore:
      return Step::kNeedMore;
    case http::RequestParser::Outcome::kFailed:
      return Step::kFail;
    case http::RequestParser::Outcome::kComplete:
      break;
  }
  last_request_ = !parser_.request().keep_alive || urgent_;
  if (urgent_) return RouteUrgent();
  if (exchanges_ == nullptr) exchanges_ = worker_.TakeExchanges();
  parser_.request().subject = subject_;
  if (!exchanges_->TryAdd(parser_.request(), remote_, received_at_)) return Step::kRoute;
  TakeRequest();
  return Step::kParse;
}

HttpSession::Step HttpSession::RouteUrgent() {
  if (AlwaysAnswered(parser_.request().path)) return Step::kRoute;
  Fail(503, "too many connections; try again later");
  return Step::kNeedMore;
}

/// Everything received is answered, except for a request that is not complete.
void HttpSession::AfterAll() {
  if (exchanges_ != nullptr) worker_.GiveBack(std::move(exchanges_));
  if (last_request_ || end_of_input_) {
    finished_ = true;
    return;
  }
  if (!input_.empty() && parser_.header_complete() && parser_.expects_continue() &&
      !continue_sent_) {
    continue_sent_ = true;
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  }
}

void HttpSession::TakeRequest() {
  input_.Consume(parser_.consumed());
  parser_.Next();
  continue_sent_ = false;
}

/// The answer that is about to be written is the connection's last.
bool HttpSession::ClosesNow() const {
  const bool more = !input_.empty() && !last_request_;
  return last_request_ || (worker_.reactor().draining() && !more);
}

/// Starts to decide the next checks, whether or not those before are decided: a remote store
/// decides all of them at the same time.
void HttpSession::Decide() {
  const std::span<limiter::Check> checks = exchanges_->TakeChecks();
  waiting_ = !midway();
  inline_ = true;
  hold_ = transport_.Self();
  ++deciding_;
  if (checks.empty()) {
    OnDecided();
  } else {
    // The capture is one pointer, which a std::function holds without allocating.
    worker_.limiter().Decide(checks, [this] { OnDecided(); });
  }
  inline_ = false;
}

void HttpSession::OnDecided() {
  if (--deciding_ > 0 || midway()) exchanges_->Keep(worker_.limiter().Keep());
  if (deciding_ > 0) return;
  const boost::intrusive_ptr<net::Connection> self = std::move(hold_);
  if (midway()) return;
  const Nanos now = worker_.Now();
  const bool close = ClosesNow() && step_ == Step::kNeedMore;
  if (exchanges_->size() >= kBurst) worker_.Lend(output_);
  exchanges_->AppendReplies(now, close, output_);
  worker_.metrics().checks.Answered(now - received_at_, exchanges_->size());
  exchanges_->Clear();
  if (close) finished_ = true;
  waiting_ = false;
  if (!inline_) transport_.Resume();
}

void HttpSession::Route() {
  http::Request& request = parser_.request();
  request.remote = remote_;
  request.secure = secure_;
  request.subject = subject_;
  request_id_ = request.Find("X-Request-Id").substr(0, 128);
  if (request_id_.empty()) {
    const auto id = telemetry::RandomId();
    request_id_.assign(id.data(), id.size());
  }
  request.request_id = request_id_;
  telemetry::Tracer* const tracer = worker_.limiter().tracer();
  trace_ = tracer == nullptr ? telemetry::SpanContext()
                             : tracer->Begin(request.Find("traceparent"), received_at_);
  waiting_ = true;
  inline_ = true;
  const auto pending = std::make_shared<PendingReply>(*this, transport_.Self());
  try {
    worker_.router().Dispatch(
        request, [pending](http::Response response) { pending->Answer(std::move(response)); });
  } catch (const std::exception& error) {
    telemetry::Log(telemetry::Level::kError, "handler failed",
                   {{"path", request.path}, {"error", std::string_view(error.what())}});
    pending->Answer(http::ErrorResponse(500, "internal error"));
  }
  inline_ = false;
}

void HttpSession::Deliver(const http::Response& response) {
  const http::Request& request = parser_.request();
  http::Envelope envelope;
  envelope.date = worker_.Date(worker_.Now());
  envelope.head = request.method == "HEAD";
  envelope.request_id = request_id_;
  std::string traceparent;
  if (trace_.sampled) {
    const telemetry::TraceHeader header = telemetry::ToHeader(trace_);
    traceparent.assign(header.data(), header.size());
    Trace(response.status);
  } else if (const auto parent = telemetry::ParseTraceParent(request.Find("traceparent"))) {
    traceparent = parent->Child().ToHeader();
  }
  envelope.traceparent = traceparent;
  const std::size_t rest = input_.unread().size() - parser_.consumed();
  envelope.close = last_request_ || (worker_.reactor().draining() && rest == 0);
  http::AppendResponse(output_, response, envelope);
  worker_.metrics().responses[static_cast<std::size_t>(response.status / 100) % 6].Add();
  if (telemetry::LogEnabled(telemetry::Level::kDebug) && worker_.MayLog(worker_.Now())) {
    telemetry::Log(telemetry::Level::kDebug, "answered",
                   {{"request_id", std::string_view(request_id_)},
                    {"method", request.method},
                    {"path", request.path},
                    {"status", std::int64_t{response.status}}});
  }
  TakeRequest();
  if (envelope.close) finished_ = true;
  waiting_ = false;
  if (!inline_) transport_.Resume();
}

/// Records the request that a handler has answered.
void HttpSession::Trace(int status) {
  const http::Request& request = parser_.request();
  telemetry::Span span;
  span.context = trace_;
  span.name = "http";
  span.start = received_at_;
  span.end = worker_.Now();
  span.failed = status >= 500;
  span.Add("weir.door", "http");
  span.Add("http.request.method", request.method);
  span.Add("url.path", request.path);
  span.Add("http.response.status_code", std::int64_t{status});
  span.Add("http.request.header.x-request-id", request_id_);
  limiter::RecordRequest(worker_.limiter().tracer(), span, {});
}

void HttpSession::Fail(int status, std::string_view message) {
  http::Envelope envelope;
  envelope.date = worker_.Date(worker_.Now());
  envelope.close = true;
  http::AppendResponse(output_, http::ErrorResponse(status, message), envelope);
  worker_.metrics().responses[static_cast<std::size_t>(status / 100)].Add();
  finished_ = true;
}

bool HttpSession::OnTimeout(net::Stream::Stage stage) {
  if (stage != net::Stream::Stage::kRequest) return true;
  worker_.metrics().timeouts.Add();
  Fail(408, "the request took too long to arrive");
  return false;
}

}  // namespace weir::service
