#pragma once

// CL.THROTTLE key max_burst count_per_period period [quantity], as redis-cell defines it: a bucket
// of max_burst + 1 permits, refilled with count_per_period permits per period seconds. THROTTLE, as
// throttlecrab defines it: the same with a bucket of max_burst permits, and another reply.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "filter/headers.h"
#include "protocol/resp/buffer.h"
#include "protocol/resp/parser.h"
#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::resp {

/// Whose command it is, and whose reply format.
enum class ThrottleStyle : std::uint8_t {
  kCell,  ///< CL.THROTTLE
  kCrab,  ///< THROTTLE
};

/// The numbers of a CL.THROTTLE command that make its quota. THROTTLE's max_burst is one more.
struct Rate {
  std::int64_t max_burst = -1;
  std::int64_t count = 0;
  std::int64_t period = 0;

  friend bool operator==(const Rate&, const Rate&) = default;
};

/// All of `text` as a decimal integer; nothing if it is anything else or does not fit.
std::optional<std::int64_t> ParseInteger(std::string_view text) noexcept;

/// Validates the numbers and makes their quota. What a Quota cannot represent is an error that
/// names the argument, as `style` counts it, never a limit that does not limit.
Result<Quota> MakeQuota(const Rate& rate, ThrottleStyle style = ThrottleStyle::kCell);

/// The quotas of recently seen rates. Clients keep sending the same few rates, and building a Quota
/// (checks, lowest terms) costs more than deciding with it. Not thread-safe: one per reactor.
class QuotaCache {
 public:
  /// Valid until the next call. Null if the rate is not a valid quota (MakeQuota says why).
  const Quota* Find(const Rate& rate);

 private:
  static constexpr std::size_t kEntries = 256;
  struct Entry {
    Rate rate;
    std::optional<Quota> quota;
  };
  std::array<Entry, kEntries> entries_;
};

/// One CL.THROTTLE command, its numbers parsed.
struct Throttle {
  Rate rate;
  std::int64_t quantity = 1;
};

/// Reads the arguments of a CL.THROTTLE command.
Result<Throttle> ParseThrottle(const Parser& command, ThrottleStyle style = ThrottleStyle::kCell);

/// Appends the five integers of the reply. kCell: limited (0 or 1), limit, remaining, seconds until
/// a retry succeeds (-1 if this one did or if none ever will), seconds until the bucket is full.
/// kCrab: allowed (0 or 1), limit, remaining, seconds until the bucket is full, seconds until a
/// retry succeeds (0 if this one did).
void WriteThrottleReply(const Decision& decision, ThrottleStyle style, Buffer& out);

/// What THROTTLE replies as the time until a retry for a `quantity` above the limit: how long a
/// bucket that could hold it would take. As in throttlecrab, it is never 0 for a refusal: clients
/// take that as "at once".
std::chrono::nanoseconds CrabRetryOfNever(const Decision& decision, std::int64_t quantity,
                                          const Quota& quota) noexcept;

using filter::CeilSeconds;

/// The fourth integer of the reply.
constexpr std::int64_t RetrySeconds(const Decision& decision) noexcept {
  return decision.verdict == Verdict::kLimited ? CeilSeconds(decision.retry_after) : -1;
}

}  // namespace weir::resp
