#include "service/http_exchange.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "limiter/request_span.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"
#include "protocol/http/uri.h"
#include "service/auth_question.h"
#include "telemetry/trace.h"
#include "telemetry/tracer.h"

namespace weir::service {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::size_t kMaxIdBytes = 128;
/// Keys and descriptors that are decided in one turn: a request may have 16,000, which take several
/// milliseconds.
constexpr std::size_t kPartsAtOnce = 256;

std::optional<bool> FlagOf(std::string_view value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return std::nullopt;
}

std::size_t PartsOf(const limiter::Check& check) noexcept {
  return std::max<std::size_t>(check.request.descriptors.size(), 1);
}

}  // namespace

const HttpExchanges::EndpointInfo& HttpExchanges::InfoOf(Endpoint endpoint) noexcept {
  using store::Op;
  static constexpr std::array<EndpointInfo, 7> kInfos = {
      {{"/v1/check", "POST", Op::kCharge, {}},
       {"/v1/peek", "POST", Op::kPeek, {}},
       {"/v1/refund", "POST", Op::kRefund, "check.refund"},
       {"/v1/release", "POST", Op::kRelease, "check.release"},
       {"/v1/reserve", "POST", Op::kCharge, {}},
       {"/v1/settle", "POST", Op::kSettle, "check.settle"},
       {"/v1/auth", "GET", Op::kCharge, {}}}};
  static_assert(kInfos.size() == static_cast<std::size_t>(Endpoint::kAuth) + 1);
  return kInfos[static_cast<std::size_t>(endpoint)];
}

void HttpExchanges::AddRoutes(http::Router& router) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Endpoint::kAuth); ++i) {
    const EndpointInfo& info = InfoOf(static_cast<Endpoint>(i));
    router.AddBatched(info.method, info.path, i);
  }
}

bool HttpExchanges::TryAdd(const http::Request& request, std::string_view remote,
                           Nanos received_at) {
  const std::optional<std::size_t> found = worker_.router().FindBatched(request.path);
  if (!found) return false;
  Item item{};
  item.endpoint = static_cast<Endpoint>(*found);
  item.received_at = received_at;
  ReadFields(request, item);
  item.head = request.method == "HEAD";
  item.first = batch_.size();
  if (item.endpoint == Endpoint::kAuth) {
    AddAuth(request, remote, item);
  } else if (request.method == "POST") {
    AddChecks(request, item);
  } else {
    Refuse(item, 405, "only POST is allowed here");
  }
  if (item.error_status == 0) Authorize(request, remote, item);
  for (limiter::Check& check : batch_.checks().subspan(item.first, item.count)) {
    check.origin = {"http", item.request_id, item.trace};
  }
  items_.push_back(item);
  return true;
}

/// Reads the request's id and its trace context.
void HttpExchanges::ReadFields(const http::Request& request, Item& item) {
  std::string_view traceparent;
  for (const http::Header& header : request.headers) {
    if (header.name.size() == 12 && EqualsIgnoringCase(header.name, "X-Request-Id")) {
      item.request_id = batch_.arena().Copy(header.value.substr(0, kMaxIdBytes));
    } else if (header.name.size() == 11 && EqualsIgnoringCase(header.name, "traceparent")) {
      traceparent = header.value;
    }
  }
  item.trace = telemetry::ArrivedWith(traceparent, worker_.limiter().tracer(), item.received_at);
  if (item.trace.span == 0) return;
  telemetry::TraceHeader header = telemetry::ToHeader(item.trace);
  // Whether the caller records is its own decision, even if nothing is recorded here.
  if (const auto parent = telemetry::ParseTraceParent(traceparent); parent && parent->sampled) {
    header.back() = '1';
  }
  item.traceparent = batch_.arena().Copy({header.data(), header.size()});
}

void HttpExchanges::Authorize(const http::Request& request, std::string_view remote, Item& item) {
  const HttpOptions& options = worker_.options();
  const std::string_view action = InfoOf(item.endpoint).gives_back;
  const bool gives_back = !action.empty();
  const auto& authorize = gives_back ? options.authorize_give_back : options.authorize_check;
  if (authorize) {
    const Status allowed = authorize(request, remote);
    if (!allowed.ok()) {
      return Refuse(item, http::StatusFor(allowed.error().code), allowed.error().message);
    }
  }
  if (gives_back && options.on_give_back) {
    options.on_give_back(request, remote, action, item.count);
  }
}

void HttpExchanges::Refuse(Item& item, int status, std::string_view message) {
  batch_.Shrink(item.first);
  item.count = 0;
  item.error_status = status;
  item.error = batch_.arena().Copy(message);
}

void HttpExchanges::RefuseTwice(Item& item, std::string_view parameter) {
  Refuse(item, 400, http::GivenTwice(parameter).message);
}

void HttpExchanges::AddChecks(const http::Request& request, Item& item) {
  if (!request.query.empty()) {
    http::QueryReader query(request.query);
    while (const auto pair = query.Next()) {
      if (pair->key != "http_status") return Refuse(item, 400, "query: only http_status is known");
      if (http::IsRepeated(request.query, *pair)) return RefuseTwice(item, pair->key);
      const std::optional<bool> wanted = FlagOf(pair->value);
      // Without a 429, a client that reads only the status takes every refusal for a yes.
      if (!wanted) return Refuse(item, 400, "http_status: must be 1, true, 0 or false");
      if (*wanted) item.denied_status = 429;
    }
  }
  const auto found = worker_.reader().Read(
      request.body, {InfoOf(item.endpoint).op, item.endpoint == Endpoint::kReserve}, batch_);
  if (!found.ok()) return Refuse(item, http::StatusFor(found.error().code), found.error().message);
  item.count = found->count;
  item.batch = found->batch;
}

void HttpExchanges::AddAuth(const http::Request& request, std::string_view remote, Item& item) {
  Arena& arena = batch_.arena();
  limiter::Check& check = batch_.Add();
  item.count = 1;
  item.denied_status = 429;
  http::QueryReader query(request.query);
  while (const auto pair = query.Next()) {
    const auto value = http::DecodeQuery(pair->value);
    if (!value) return Refuse(item, 400, "query: bad percent-encoding");
    if (http::IsRepeated(request.query, *pair)) return RefuseTwice(item, pair->key);
    if (pair->key == "domain") {
      check.request.domain = arena.Copy(value->substr(0, http::kMaxNameBytes));
    } else if (pair->key == "cost") {
      const auto cost = ParseNumber<std::int64_t>(*value);
      if (!cost || *cost < 0 || *cost > kMaxLimit) {
        return Refuse(item, 400, "cost: must be an integer from 0 to 1099511627776");
      }
      check.request.cost = *cost;
    } else if (pair->key == "deny_status") {
      const auto status = ParseNumber<std::int64_t>(*value);
      if (!status || (*status != 401 && *status != 403 && *status != 429)) {
        return Refuse(item, 400, "deny_status: must be 401, 403 or 429");
      }
      item.denied_status = static_cast<int>(*status);
    } else if (pair->key == "release") {
      const Status parsed = limiter::ParsePermits(*value, check.permits);
      if (!parsed.ok()) return Refuse(item, 400, "release: " + parsed.error().message);
      check.op = store::Op::kRelease;
      item.endpoint = Endpoint::kRelease;
    } else {
      return Refuse(item, 400, "query: only domain, cost, deny_status and release are known");
    }
  }
  item.accept = arena.Copy(request.Find("Accept").substr(0, http::kMaxValueBytes));
  AuthQuestion question(request, remote, worker_.options().auth, arena);
  if (!question.error().empty()) return RefuseQuestion(item, question);
  question.Fill(check.request);
}

/// A proxy that asked for another status than 429 treats only that one as a refusal, and would take
/// 400 for an error of ours. To its client this looks like a refusal, so the log says what it is.
void HttpExchanges::RefuseQuestion(Item& item, const AuthQuestion& question) {
  worker_.limiter().NoteRejection({.door = "http",
                                   .reason = question.error(),
                                   .address = question.address(),
                                   .request_id = item.request_id});
  Refuse(item, item.denied_status == 429 ? 400 : item.denied_status, question.error());
}

int HttpExchanges::StatusOf(const Item& item) {
  if (item.error_status != 0) return item.error_status;
  if (item.batch) {
    if (item.denied_status == 200) return 200;
    int status = 200;
    for (const limiter::Check& check : batch_.checks().subspan(item.first, item.count)) {
      if (!check.status.ok()) {  // a client that reads only the status must not take it for a yes
        status = http::StatusFor(check.status.error().code);
      } else if (!check.decision.allowed()) {
        return item.denied_status;
      }
    }
    return status;
  }
  const limiter::Check& check = batch_.checks()[item.first];
  if (!check.status.ok()) return http::StatusFor(check.status.error().code);
  return check.decision.allowed() ? 200 : item.denied_status;
}

void HttpExchanges::AppendReplies(Nanos now, bool close, std::string& out) {
  http::Envelope envelope;
  envelope.date = worker_.Date(now);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    envelope.close = close && i + 1 == items_.size();
    envelope.request_id = item.request_id;
    envelope.traceparent = item.traceparent;
    envelope.head = item.head;
    AppendReply(item, envelope, out);
    if (item.trace.sampled) [[unlikely]]
      Trace(item, now);
  }
}

void HttpExchanges::AppendReply(const Item& item, http::Envelope& envelope, std::string& out) {
  const int status = StatusOf(item);
  worker_.metrics().responses[static_cast<std::size_t>(status / 100)].Add();
  const bool decided = item.error_status == 0 && (status == 200 || status == item.denied_status);
  if (item.endpoint == Endpoint::kAuth && decided) {
    return AppendAuthReply(item, envelope, out);
  }
  body_.clear();
  JsonWriter json(body_);
  const limiter::Check* check = item.count == 1 ? &batch_.checks()[item.first] : nullptr;
  if (item.error_status != 0) {
    http::AppendErrorBody(body_, status, item.error);
  } else if (item.batch) {
    json.BeginObject().Key("results").BeginArray();
    for (const limiter::Check& each : batch_.checks().subspan(item.first, item.count)) {
      http::AppendDecision(json, each);
    }
    json.EndArray().EndObject();
  } else if (!check->status.ok()) {
    http::AppendErrorBody(body_, status, check->status.error().message);
  } else {
    http::AppendDecision(json, *check);
  }
  http::AppendHead(out, status, kJson, body_.size(), envelope);
  if (status == 405) http::AppendField(out, "Allow", "POST");
  if (check != nullptr && !item.batch && check->status.ok()) {
    http::AppendLimitHeaders(out, *check, worker_.options().headers);
  }
  out += "\r\n";
  if (!envelope.head) out += body_;
}

void HttpExchanges::AppendAuthReply(const Item& item, const http::Envelope& envelope,
                                    std::string& out) {
  const limiter::Check& check = batch_.checks()[item.first];
  if (check.decision.allowed()) {
    http::AppendHead(out, 200, {}, 0, envelope);
    http::AppendField(out, http::kCacheControl, "no-store");
    http::AppendLimitHeaders(out, check, worker_.options().headers);
    if (check.decision.lease != 0) {
      out += "X-RateLimit-Leases: ";
      limiter::AppendPermits(out, check);
      out += "\r\n";
    }
    out += "\r\n";
    return;
  }
  const filter::Denial denial = http::DenialOf(check, item.accept, worker_.Now());
  http::AppendHead(out, item.denied_status, denial.content_type, denial.body.size(), envelope);
  http::AppendField(out, http::kCacheControl, "no-store");
  http::AppendLimitHeaders(out, check, worker_.options().headers);
  out += "\r\n";
  if (!envelope.head) out += denial.body;
}

void HttpExchanges::Trace(const Item& item, Nanos now) {
  telemetry::Span span;
  span.context = item.trace;
  span.name = InfoOf(item.endpoint).path;
  span.start = item.received_at;
  span.end = now;
  const int status = StatusOf(item);
  span.failed = status >= 500;
  span.Add("weir.door", "http");
  span.Add("http.response.status_code", std::int64_t{status});
  span.Add("http.request.header.x-request-id", item.request_id);
  limiter::RecordRequest(worker_.limiter().tracer(), span,
                         batch_.checks().subspan(item.first, item.count));
}

std::span<limiter::Check> HttpExchanges::TakeChecks() noexcept {
  const std::span<limiter::Check> checks = batch_.checks();
  const std::size_t first = taken_;
  for (std::size_t parts = 0; taken_ < checks.size() && parts < kPartsAtOnce; ++taken_) {
    parts += PartsOf(checks[taken_]);
  }
  if (first == 0 && midway()) {
    std::size_t parts = 0;
    for (const limiter::Check& check : checks) parts += PartsOf(check);
    if (worker_.BeginParts(parts)) {
      parts_ = parts;
    } else {
      taken_ = checks.size();
    }
  }
  if (!midway()) EndParts();
  return checks.subspan(first, taken_ - first);
}

void HttpExchanges::EndParts() noexcept { worker_.EndParts(std::exchange(parts_, 0)); }

void HttpExchanges::Clear() {
  EndParts();
  taken_ = 0;
  kept_.clear();
  items_.clear();
  batch_.Clear();
}

}  // namespace weir::service
