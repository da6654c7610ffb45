// What happens now: GET /admin/top and GET /admin/live.

#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "admin/admin.h"
#include "base/instant.h"
#include "base/json_text.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMaxTop = 100;
constexpr std::string_view kBareKey = "key|";
constexpr std::string_view kThrottleKey = "cl|";  // CL.THROTTLE, whose rate came with the command

/// The text of a bare key whose bucket is given without "key|" (policy/keys.h escapes it).
std::string Unescaped(std::string_view text) {
  return http::DecodeAnySegment(text).value_or(std::string(text));
}

/// What a client calls the key of a bucket, where that can be told.
std::string KeyOf(const std::string& bucket) {
  if (bucket.starts_with(kBareKey)) return Unescaped(bucket.substr(kBareKey.size()));
  return bucket.starts_with(kThrottleKey) ? bucket.substr(kThrottleKey.size()) : bucket;
}

std::optional<limiter::TopKeys::Kind> KindNamed(std::string_view name) {
  using Kind = limiter::TopKeys::Kind;
  if (name == "hot") return Kind::kHot;
  if (name == "limited") return Kind::kLimited;
  if (name == "shadow") return Kind::kShadow;
  return std::nullopt;
}

http::Response Top(const AdminParts& parts, const http::Request& request) {
  const std::string kind = http::QueryValue(request.query, "kind").value_or("hot");
  using Keys = limiter::TopKeys;
  const std::optional<Keys::Kind> wanted_kind = KindNamed(kind);
  if (!wanted_kind) return http::ErrorResponse(400, "kind: must be hot, limited or shadow");
  const std::string wanted = http::QueryValue(request.query, "n").value_or("20");
  std::size_t n = 0;
  const auto [end, failed] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), n);
  if (failed != std::errc() || end != wanted.data() + wanted.size() || n < 1 || n > kMaxTop) {
    return http::ErrorResponse(400, "n: must be an integer from 1 to 100");
  }
  const auto keys = parts.top.Top(*wanted_kind, n, SystemClock::Get().Now());
  const auto names = parts.catalog.ids().Names();
  http::Response response;
  std::string& body = response.body;
  body = "{\"kind\":\"" + kind + "\",\"windowSeconds\":" + std::to_string(Keys::kWindowSeconds) +
         ",\"keys\":[";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Keys::Key& key = keys[i];
    body += i == 0 ? "{\"key\":" : ",{\"key\":";
    AppendJsonString(body, KeyOf(key.key));
    body += ",\"bucket\":";
    AppendJsonString(body, key.key);
    body.append(",\"count\":").append(std::to_string(key.count));
    body.append(",\"error\":").append(std::to_string(key.error)).append(",\"policy\":");
    AppendJsonString(body, key.policy < names.size()           ? names[key.policy].policy
                           : key.key.starts_with(kThrottleKey) ? "CL.THROTTLE"
                                                               : "override");
    body += '}';
  }
  body += "]}";
  return response;
}

void AppendMicros(std::string& out, std::string_view name, double micros) {
  std::array<char, 48> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.1f", micros);
  out.append(",\"").append(name).append("\":");
  out.append(text.data(), static_cast<std::size_t>(size));
}

http::Response Live(const AdminParts& parts) {
  http::Response response;
  std::string& body = response.body;
  body = "{\"now\":\"" + FormatInstant(SystemClock::Get().Now()) + "\",\"perSecond\":[";
  bool first = true;
  for (const SecondTotals& second : parts.live.Last(LiveTotals::kSeconds)) {
    if (!std::exchange(first, false)) body += ',';
    body.append("{\"t\":").append(std::to_string(second.second));
    body.append(",\"allowed\":").append(std::to_string(second.allowed));
    body.append(",\"limited\":").append(std::to_string(second.limited));
    AppendMicros(body, "p50us", second.p50_us);
    AppendMicros(body, "p99us", second.p99_us);
    body += '}';
  }
  const auto health = parts.store_health();
  body += "],\"store\":{\"kind\":";
  AppendJsonString(body, parts.store_name.substr(0, parts.store_name.find(':')));
  body += !health || health->up ? ",\"state\":\"up\"" : ",\"state\":\"down\"";
  body += ",\"breaker\":";
  AppendJsonString(body, health ? health->breaker : "closed");
  body += "}}";
  return response;
}

}  // namespace

void AddAdminLive(http::Router& router, const AdminParts& parts) {
  router.Add("GET", "/admin/top",
             Guarded(parts.guard, [&parts](const http::Request& request, const http::Reply& reply) {
               reply(Top(parts, request));
             }));
  router.Add("GET", "/admin/live",
             Guarded(parts.guard, [&parts](const http::Request&, const http::Reply& reply) {
               reply(Live(parts));
             }));
}

}  // namespace weir::admin
