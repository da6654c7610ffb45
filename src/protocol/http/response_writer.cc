#include "protocol/http/response_writer.h"

#include <algorithm>
#include <vector>

#include "base/ascii.h"
#include "base/hex.h"
#include "base/http_status.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "weir/result.h"

namespace weir::http {
namespace {

bool IsPlain(char c) noexcept { return c >= 0x20 && c < 0x7f; }

/// A field name is a token; any other byte would end the name or the line.
bool IsOfName(char c) noexcept { return IsLetterOrDigit(c) || c == '-' || c == '_'; }

/// Appends `text`, with each byte that is not `safe` as %XX. Nearly always all of them are.
template <typename Safe>
void AppendEscaped(std::string& out, std::string_view text, Safe safe) {
  const auto bad = std::find_if_not(text.begin(), text.end(), safe);
  if (bad == text.end()) {
    out += text;
    return;
  }
  for (const char c : text) {
    if (safe(c)) {
      out += c;
    } else {
      AppendPercent(out, c);
    }
  }
}

std::string_view StatusLine(int status) noexcept {
  switch (status) {
    case 200:
      return "HTTP/1.1 200 OK\r\n";
    case 429:
      return "HTTP/1.1 429 Too Many Requests\r\n";
    default:
      return {};
  }
}

}  // namespace

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  AppendEscaped(out, name, IsOfName);
  out += ": ";
  AppendEscaped(out, value, IsPlain);
  out += "\r\n";
}

std::string_view DateCache::At(std::time_t now) {
  constexpr std::size_t kLength = 29;
  if (now != second_) {
    second_ = now;
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::strftime(text_.data(), text_.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  }
  return {text_.data(), kLength};
}

std::int64_t CeilMillis(std::chrono::nanoseconds duration) noexcept {
  constexpr std::int64_t kNanos = 1'000'000;
  const std::int64_t nanos = std::max<std::int64_t>(duration.count(), 0);
  return nanos / kNanos + (nanos % kNanos != 0 ? 1 : 0);
}

void AppendHead(std::string& out, int status, std::string_view content_type, std::size_t length,
                const Envelope& envelope) {
  if (const std::string_view line = StatusLine(status); !line.empty()) {
    out += line;
  } else {
    out += "HTTP/1.1 ";
    AppendNumber(out, status);
    out.append(" ").append(ReasonPhrase(status)).append("\r\n");
  }
  if (!envelope.date.empty()) AppendField(out, "Date", envelope.date);
  if (!content_type.empty() && length != 0) AppendField(out, "Content-Type", content_type);
  if (status != 204 && status != 304) {
    out += "Content-Length: ";
    AppendNumber(out, static_cast<std::int64_t>(length));
    out += "\r\n";
  }
  if (!envelope.request_id.empty()) AppendField(out, "X-Request-Id", envelope.request_id);
  if (!envelope.traceparent.empty()) AppendField(out, "traceparent", envelope.traceparent);
  if (envelope.close) out += "Connection: close\r\n";
}

void AppendResponse(std::string& out, const Response& response, const Envelope& envelope) {
  AppendHead(out, response.status, response.content_type, response.body.size(), envelope);
  bool says_how_long = false;
  for (const auto& [name, value] : response.headers) {
    AppendField(out, name, value);
    says_how_long = says_how_long || name == kCacheControl;
  }
  if (!says_how_long) AppendField(out, kCacheControl, "no-store");
  out += "\r\n";
  if (!envelope.head) out += response.body;
}

void AppendDecision(JsonWriter& json, const limiter::Check& check) {
  json.BeginObject();
  if (!check.status.ok()) {
    json.Field("error", CodeName(check.status.error().code));
    json.Field("message", check.status.error().message).EndObject();
    return;
  }
  const Decision& decision = check.decision;
  json.Field("allowed", decision.allowed())
      .Field("limit", decision.limit)
      .Field("remaining", std::max<std::int64_t>(decision.remaining, 0))
      .Field("retryAfterMs", CeilMillis(decision.retry_after))
      .Field("resetAfterMs", CeilMillis(decision.reset_after))
      .Field("policy", check.policy);
  if (!check.matched) json.Field("matched", false);
  if (decision.verdict == Verdict::kNever) json.Field("never", true);
  if (decision.lease != 0) {
    thread_local std::string permits;
    permits.clear();
    limiter::AppendPermits(permits, check);
    json.Field("lease", decision.lease).Field("leases", permits);
  }
  if (check.op == store::Op::kRelease) json.Field("released", check.applied);
  if (check.op == store::Op::kSettle) json.Field("settled", check.applied);
  if (!check.reservation.empty()) {
    json.Field("reservation", check.reservation).Field("expiresAfterMs", check.reserve.count());
  }
  if (check.degraded) json.Field("degraded", true);
  if (check.estimated) json.Field("estimated", true);
  json.EndObject();
}

void AppendLimitHeaders(std::string& out, const limiter::Check& check,
                        filter::HeaderChoice choice) {
  thread_local std::vector<filter::Applied> applied;
  applied.clear();
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    if (verdict.shadow || verdict.quota == nullptr) continue;
    applied.push_back({verdict.policy, verdict.quota, verdict.decision});
  }
  filter::GiveLimitHeaders(
      applied, check.decision, choice,
      [&out](std::string_view name, std::string_view value) { AppendField(out, name, value); });
  if (!check.degraded_by.empty()) AppendField(out, "X-RateLimit-Degraded", check.degraded_by);
}

filter::Denial DenialOf(const limiter::Check& check, std::string_view accept, Nanos now) {
  if (check.refused_unmatched()) return filter::MakeDenial(filter::kUnmatched, accept, now);
  return filter::MakeDenial(check.decision, accept, now, limiter::RefusedKey(check));
}

}  // namespace weir::http
