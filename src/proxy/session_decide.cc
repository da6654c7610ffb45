// Who a request is from and what it is for, as one descriptor for each name of its path, and what
// the limiter decides. Whatever the upstream could read differently than we do is refused: it
// would be counted as another client's request, or as one for another page.

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "filter/client_address.h"
#include "filter/field_names.h"
#include "filter/headers.h"
#include "protocol/http/response_writer.h"
#include "proxy/session.h"
#include "telemetry/tracer.h"

namespace weir::proxy {
namespace {

constexpr std::size_t kMaxIdBytes = 128;

}  // namespace

std::string_view Session::ClientIdentity() {
  if (!trusted_) return identity_;
  const auto forwarded = [this](std::size_t n) -> std::optional<std::string_view> {
    const http::Field* field = request_.Find("x-forwarded-for", n);
    return field == nullptr ? std::nullopt : std::optional(field->value);
  };
  const IpAddress client =
      filter::ResolveClient(*IpAddress::Parse(peer_), forwarded, shared_.options.trusted_proxies);
  identity_ = ClientKey(client, shared_.options.grouping);
  return identity_;
}

/// Whether a field has a different name than `header` but could be taken for it.
bool Session::HasLookalike(std::string_view header) const {
  return std::any_of(request_.fields.begin(), request_.fields.end(), [&](const http::Field& field) {
    return filter::ReadsAsField(field.name, header) && !EqualsIgnoringCase(field.name, header);
  });
}

std::string_view Session::Identity(const std::string& header, const char*& wrong) const {
  if (header.empty()) return {};
  // A field that Connection names does not reach the upstream: the request would be counted as one
  // client's, and served as another's.
  if (request_.Find(header, 1) != nullptr || HasLookalike(header) || request_.Nominates(header)) {
    wrong =
        "a header field that identifies the client was sent twice, with another sign for -, or "
        "named in "
        "Connection";
  }
  const http::Field* field = request_.Find(header);
  return field == nullptr ? std::string_view() : field->value;
}

/// Fills the check's request. Null, or why the request is refused.
const char* Session::Describe() {
  const ProxyOptions& options = shared_.options;
  const char* wrong = routes_.Read(request_.target);
  entries_.clear();
  const auto add = [this](std::string_view key, std::string_view value) {
    if (!value.empty()) entries_.push_back({key, value});
  };
  add("ip", ClientIdentity());
  add("api_key", Identity(options.api_key_header, wrong));
  add("user", Identity(options.user_header, wrong));
  if (HasLookalike("x-forwarded-for")) wrong = "a header field looks like X-Forwarded-For";
  if (HasLowerCase(request_.method)) wrong = http::kLowerCaseMethod;
  if (wrong != nullptr) return wrong;
  const std::size_t subjects = entries_.size();
  add("method", request_.method);
  const std::size_t common = entries_.size();
  const auto names = routes_.names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      entries_.resize(entries_.size() + common);
      std::copy_n(entries_.begin(), common, entries_.end() - static_cast<std::ptrdiff_t>(common));
    }
    add("route", names[i]);
  }
  descriptors_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    descriptors_.push_back(std::span(entries_).subspan(i * (common + 1), common + 1));
  }
  const http::Field* id = request_.Find("x-request-id");
  check_.Reset(
      store::Op::kCharge,
      {"proxy", id == nullptr ? std::string_view() : id->value.substr(0, kMaxIdBytes), trace_});
  check_.request.domain = options.domain;
  check_.request.descriptors = descriptors_;
  check_.request.subjects = std::span(entries_).first(subjects);
  check_.request.default_applies = options.default_applies;
  return nullptr;
}

/// The client cannot tell our 400 from one of the upstream, so the log says what it is about.
void Session::NoteRejection(std::string_view why) {
  const http::Field* id = request_.Find("x-request-id");
  shared_.limiter->NoteRejection(
      {.door = "proxy",
       .reason = why,
       .address = ClientIdentity(),
       .request_id = id == nullptr ? std::string_view() : id->value.substr(0, kMaxIdBytes)});
}

void Session::BeginTrace() {
  telemetry::Tracer* const tracer =
      shared_.limiter == nullptr ? nullptr : shared_.limiter->tracer();
  const http::Field* parent = request_.Find("traceparent");
  trace_start_ = tracer == nullptr ? 0 : SystemClock::Get().Now();
  trace_ = telemetry::ArrivedWith(parent == nullptr ? std::string_view() : parent->value, tracer,
                                  trace_start_);
}

/// `status`: what the client was answered; 0: it was cut off.
void Session::EndTrace(int status) {
  if (!trace_.sampled) return;
  telemetry::Span span;
  span.context = std::exchange(trace_, {});
  span.name = "proxy";
  span.start = trace_start_;
  span.end = SystemClock::Get().Now();
  span.failed = status == 0 || status >= 500;
  span.Add("weir.door", "proxy");
  if (status != 0) span.Add("http.response.status_code", std::int64_t{status});
  span.kind = telemetry::Span::Kind::kServer;
  shared_.limiter->tracer()->Record(span);
}

void Session::Decide() {
  phase_ = Phase::kDeciding;
  // Whatever the outcome, the answer is to this request.
  exchange_ = {};
  exchange_.to_head = request_.method == "HEAD";
  exchange_.http10 = request_.minor_version == 0;
  limit_lines_.clear();
  if (shared_.limiter == nullptr) return BeginExchange();
  if (const char* why = Describe()) {
    Count(shared_.stats.rejected);
    NoteRejection(why);
    const std::string body = filter::ErrorJson(400, why, SystemClock::Get().Now());
    return Refuse({.status = 400, .content_type = "application/json", .body = body});
  }
  Touch(shared_.options.timeouts.stall);
  // The reference is counted by hand so that the callback is one plain pointer, which std::function
  // holds without allocating.
  intrusive_ptr_add_ref(this);
  shared_.limiter->Decide({&check_, 1}, [this] { Ptr(this, false)->OnDecided(); });
}

void Session::OnDecided() {
  const bool granted = check_.status.ok() && check_.decision.allowed();
  if (granted) HoldPermits();
  if (phase_ != Phase::kDeciding) return ReleasePermits();  // the client has disconnected meanwhile
  if (!check_.status) {
    const bool theirs = check_.status.error().code == Code::kInvalidArgument;
    return Fail(theirs ? 400 : 503,
                "the limit could not be checked: " + check_.status.error().message);
  }
  WriteLimitLines();
  if (!granted) return Deny();
  BeginExchange();
}

void Session::WriteLimitLines() {
  constexpr std::size_t kMaxShown = 16;
  std::array<filter::Applied, kMaxShown> applied;
  std::size_t count = 0;
  for (const limiter::PolicyVerdict& verdict : check_.verdicts) {
    if (verdict.quota == nullptr || verdict.shadow || count == kMaxShown) continue;
    applied[count++] = {verdict.policy, verdict.quota, verdict.decision};
  }
  filter::GiveLimitHeaders({applied.data(), count}, check_.decision, shared_.options.headers,
                           [this](std::string_view name, std::string_view value) {
                             limit_lines_.append(name).append(": ").append(value).append("\r\n");
                           });
  if (!check_.degraded_by.empty()) {
    limit_lines_.append("X-RateLimit-Degraded: ").append(check_.degraded_by).append("\r\n");
  }
}

void Session::Deny() {
  const http::Field* accept = request_.Find(http::FieldId::kAccept);
  const filter::Denial denial = http::DenialOf(
      check_, accept == nullptr ? std::string_view() : accept->value, SystemClock::Get().Now());
  Refuse({.status = 429,
          .content_type = denial.content_type,
          .extra = limit_lines_,
          .body = denial.body});
}

/// Answers a request that is not forwarded.
void Session::Refuse(const OwnResponse& response) {
  // A body that has arrived is skipped; one that is still on its way is not waited for.
  request_body_.Start(request_.framing());
  const bool close = request_.close;
  in_.Consume(head_size_);
  in_.Consume(request_body_.Take(in_.view()));
  Reply(response, close || !request_body_.done());
}

}  // namespace weir::proxy
