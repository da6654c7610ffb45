// Current activity: GET /admin/top and GET /admin/live.

#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "admin/admin.h"
#include "admin/subject.h"
#include "admin/throttled.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "base/url.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"
#include "protocol/http/uri.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMaxTop = 100;

/// The text of a bare key whose bucket is given without "key|" (policy/keys.h escapes it).
std::string Unescaped(std::string_view text) {
  return http::DecodeAnySegment(text).value_or(std::string(text));
}

/// What a client calls the key of a bucket, if that is known.
std::string KeyOf(const std::string& bucket) {
  if (bucket.starts_with(kBareBucket)) return Unescaped(bucket.substr(kBareBucket.size()));
  return bucket.starts_with(kThrottleBucket) ? bucket.substr(kThrottleBucket.size()) : bucket;
}

std::optional<limiter::TopKeys::Kind> KindNamed(std::string_view name) {
  using Kind = limiter::TopKeys::Kind;
  if (name == "hot") return Kind::kHot;
  if (name == "limited") return Kind::kLimited;
  if (name == "shadow") return Kind::kShadow;
  return std::nullopt;
}

http::Response Top(const AdminParts& parts, const http::Request& request) {
  const auto query = http::Query::Read(request.query, {"kind", "n"});
  if (!query.ok()) return http::ErrorResponse(query.error());
  const std::string kind = query->Find("kind").value_or("hot");
  using Keys = limiter::TopKeys;
  const std::optional<Keys::Kind> wanted_kind = KindNamed(kind);
  if (!wanted_kind) return http::ErrorResponse(400, "kind: must be hot, limited or shadow");
  const std::string wanted = query->Find("n").value_or("20");
  const auto n = ParseNumber<std::size_t>(wanted, 1, kMaxTop);
  if (!n) return http::ErrorResponse(400, "n: must be an integer from 1 to 100");
  const auto keys = parts.top.Top(*wanted_kind, *n, SystemClock::Get().Now());
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject()
      .Field("kind", kind)
      .Field("windowSeconds", Keys::kWindowSeconds)
      .Key("keys")
      .BeginArray();
  for (const Keys::Key& key : keys) {
    const auto name = parts.catalog.ids().NameOf(key.policy);
    const std::string_view policy = name ? std::string_view(name->policy)
                                    : key.key.starts_with(kThrottleBucket) ? "CL.THROTTLE"
                                                                           : "override";
    json.BeginObject()
        .Field("key", KeyOf(key.key))
        .Field("bucket", key.key)
        .Field("count", key.count)
        .Field("error", key.error)
        .Field("policy", policy)
        .EndObject();
  }
  json.EndArray().EndObject();
  return response;
}

/// Rounds to a tenth.
void AppendMicros(JsonWriter& json, std::string_view name, double micros) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f", micros);
  json.RawField(name, text.data());
}

/// "memory", or with several stores "main=mysql, hot=redis".
std::string KindsOf(std::string_view stores) {
  constexpr std::string_view kBetween = ", ";
  std::string kinds;
  for (;;) {
    const std::size_t end = stores.find(kBetween);
    kinds += SchemeOf(stores.substr(0, end));
    if (end == std::string_view::npos) return kinds;
    kinds += kBetween;
    stores.remove_prefix(end + kBetween.size());
  }
}

http::Response Live(const AdminParts& parts) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject()
      .Field("now", FormatInstant(SystemClock::Get().Now()))
      .Key("perSecond")
      .BeginArray();
  for (const SecondTotals& second : parts.live.Last(LiveTotals::kSeconds)) {
    json.BeginObject()
        .Field("t", second.second)
        .Field("allowed", second.allowed)
        .Field("limited", second.limited);
    AppendMicros(json, "p50us", second.p50_us);
    AppendMicros(json, "p99us", second.p99_us);
    json.EndObject();
  }
  const auto health = parts.store_health();
  json.EndArray()
      .Key("store")
      .BeginObject()
      .Field("kind", KindsOf(parts.store_name))
      .Field("state", !health || health->up ? "up" : "down")
      .Field("breaker", health ? std::string_view(health->breaker) : "closed")
      .EndObject()
      .EndObject();
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
