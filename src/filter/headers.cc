#include "filter/headers.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "algorithm/algorithms.h"
#include "base/ascii.h"
#include "base/http_status.h"
#include "base/instant.h"
#include "base/json_writer.h"

namespace weir::filter {

namespace {

constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

/// A decimal on the stack, so that a header costs no allocation.
class Decimal {
 public:
  explicit Decimal(std::int64_t value) noexcept {
    size_ = static_cast<std::size_t>(
        std::to_chars(digits_.data(), digits_.data() + digits_.size(), value).ptr - digits_.data());
  }
  std::string_view text() const noexcept { return {digits_.data(), size_}; }

 private:
  std::array<char, 20> digits_;
  std::size_t size_;
};

/// A structured-field string (RFC 9651): printable ASCII in quotes.
void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= 0x20 && c < 0x7f ? c : '_';
  }
  out += '"';
}

void AppendPolicy(std::string& out, const Applied& applied) {
  if (!out.empty()) out += ", ";
  AppendQuoted(out, applied.policy);
  out.append(";q=").append(Decimal(applied.quota->limit()).text());
  if (algorithm::Of(*applied.quota).leases) {
    out += ";qu=\"concurrent-requests\"";
  } else {
    out.append(";w=").append(Decimal(CeilSeconds(applied.quota->window())).text());
  }
}

void AppendState(std::string& out, const Applied& applied) {
  if (!out.empty()) out += ", ";
  AppendQuoted(out, applied.policy);
  out.append(";r=").append(Decimal(std::max<std::int64_t>(applied.decision.remaining, 0)).text());
  out.append(";t=").append(Decimal(CeilSeconds(applied.decision.reset_after)).text());
}

/// A request whose path has several names may match one policy several times: the client is shown
/// the strictest.
bool IsShown(std::span<const Applied> applied, std::size_t index) noexcept {
  for (std::size_t i = 0; i < applied.size(); ++i) {
    if (i == index || applied[i].policy != applied[index].policy) continue;
    const std::int64_t other = applied[i].decision.remaining;
    const std::int64_t own = applied[index].decision.remaining;
    if (other < own || (other == own && i < index)) return false;
  }
  return true;
}

/// Removes and returns the part before the next `separator`.
std::string_view Next(std::string_view& rest, char separator) noexcept {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  return Trim(part);
}

/// The weight of a media range in thousandths, from its parameters; 1000 if there is no `q`.
int Weight(std::string_view parameters) noexcept {
  while (!parameters.empty()) {
    const std::string_view parameter = Next(parameters, ';');
    if (parameter.size() < 3 || Lower(parameter[0]) != 'q' || parameter[1] != '=') continue;
    if (parameter[2] != '0') return 1000;
    int weight = 0;
    for (std::size_t i = 4; i < 7; ++i) {
      const char digit = i < parameter.size() ? parameter[i] : '0';
      weight = weight * 10 + (digit >= '0' && digit <= '9' ? digit - '0' : 0);
    }
    return weight;
  }
  return 1000;
}

bool IsJson(std::string_view type) noexcept {
  return EqualsIgnoringCase(type, "application/json") ||
         (type.size() > 5 && EqualsIgnoringCase(type.substr(type.size() - 5), "+json"));
}

}  // namespace

void GiveLimitHeaders(std::span<const Applied> applied, const Decision& strictest,
                      HeaderChoice choice, const HeaderSink& sink) {
  if (strictest.verdict == Verdict::kLimited) {
    const std::int64_t wait = std::max<std::int64_t>(CeilSeconds(strictest.retry_after), 1);
    sink("Retry-After", Decimal(wait).text());
  }
  if (applied.empty()) return;
  if (choice.x_ratelimit) {
    sink("X-RateLimit-Limit", Decimal(strictest.limit).text());
    sink("X-RateLimit-Remaining", Decimal(std::max<std::int64_t>(strictest.remaining, 0)).text());
    sink("X-RateLimit-Reset", Decimal(CeilSeconds(strictest.reset_after)).text());
  }
  if (!choice.ietf) return;
  thread_local std::string value;
  value.clear();
  for (std::size_t i = 0; i < applied.size(); ++i) {
    if (IsShown(applied, i)) AppendPolicy(value, applied[i]);
  }
  sink("RateLimit-Policy", value);
  value.clear();
  for (std::size_t i = 0; i < applied.size(); ++i) {
    if (IsShown(applied, i)) AppendState(value, applied[i]);
  }
  sink("RateLimit", value);
}

Denial MakeDenial(const Decision& decision, std::string_view accept, Nanos now,
                  std::string_view key) {
  std::string message;
  if (decision.verdict == Verdict::kNever) {
    message = "The cost of this request is above its limit, so it can never be allowed";
  } else {
    const std::int64_t wait = std::max<std::int64_t>(CeilSeconds(decision.retry_after), 1);
    message.append("Try again in ").append(Decimal(wait).text()).append(" seconds");
  }
  if (!key.empty() && decision.verdict != Verdict::kNever && WantsJson(accept)) {
    message = "Rate limit exceeded for key: " + std::string(key);
  }
  return MakeDenial(message, accept, now);
}

Denial MakeDenial(std::string_view reason, std::string_view accept, Nanos now) {
  if (WantsJson(accept)) return {"application/json", ErrorJson(429, reason, now)};
  return {"text/plain; charset=utf-8", std::string(reason)};
}

std::string ErrorJson(int status, std::string_view message, Nanos now) {
  std::string text;
  JsonWriter(text)
      .BeginObject()
      .Field("status", status)
      .Field("error", ReasonPhrase(status))
      .Field("message", message)
      .Field("timestamp", FormatInstant(now / kNanosPerSecond * kNanosPerSecond))
      .EndObject();
  return text;
}

bool WantsJson(std::string_view accept) noexcept {
  int json = 0;
  int text = 0;
  while (!accept.empty()) {
    std::string_view parameters = Next(accept, ',');
    const std::string_view type = Next(parameters, ';');
    if (IsJson(type)) json = std::max(json, Weight(parameters));
    if (EqualsIgnoringCase(type, "text/plain")) text = std::max(text, Weight(parameters));
  }
  return json > 0 && json >= text;
}

}  // namespace weir::filter
