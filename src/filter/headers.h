#pragma once

// What a client is told about its limits: response headers, and the body of a refusal. All HTTP
// endpoints (proxy, /v1/auth, /v1/check, weir::Filter) use this code.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::filter {

/// One quota that a request was checked against.
struct Applied {
  std::string_view policy;
  const Quota* quota = nullptr;
  Decision decision;
};

/// Which headers are sent. Retry-After always goes with a 429.
struct HeaderChoice {
  bool x_ratelimit = true;  ///< X-RateLimit-Limit, -Remaining, -Reset
  bool ietf = true;  ///< RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-11
};

/// Receives one header. The value is invalid once the call returns.
using HeaderSink = std::function<void(std::string_view name, std::string_view value)>;

/// Passes the headers for a request checked against `applied`, of which `strictest` decided, to
/// `sink`; none when `applied` is empty. Times are whole seconds from now, rounded up.
void GiveLimitHeaders(std::span<const Applied> applied, const Decision& strictest,
                      HeaderChoice choice, const HeaderSink& sink);

/// Whole seconds, rounded up: waiting that long is always enough.
constexpr std::int64_t CeilSeconds(std::chrono::nanoseconds duration) noexcept {
  return duration.count() <= 0 ? 0 : (duration.count() - 1) / 1'000'000'000 + 1;
}

/// The body of a refusal and its type.
struct Denial {
  std::string_view content_type;  ///< a literal
  std::string body;
};

/// The message for a request that no policy applies to, where those are refused.
inline constexpr std::string_view kUnmatched =
    "No policy applies to this request, and such requests are refused";

/// `Try again in N seconds`; if `accept` (the Accept header) prefers JSON, the error schema with
/// `Rate limit exceeded for key: …` if the key is known, and with the same text if it is not.
Denial MakeDenial(const Decision& decision, std::string_view accept, Nanos now,
                  std::string_view key = {});

/// A refusal for another reason.
Denial MakeDenial(std::string_view reason, std::string_view accept, Nanos now);

/// `{"status":502,"error":"Bad Gateway","message":…,"timestamp":"2026-02-22T06:55:00Z"}`
std::string ErrorJson(int status, std::string_view message, Nanos now);

/// Whether an Accept header names JSON, and prefers it at least as much as plain text.
bool WantsJson(std::string_view accept) noexcept;

}  // namespace weir::filter
