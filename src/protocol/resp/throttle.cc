#include "protocol/resp/throttle.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/int128.h"
#include "base/number.h"
#include "protocol/resp/reply.h"

namespace weir::resp {
namespace {

Error NotAnInteger(std::string_view name, std::string_view text) {
  return Invalid(std::string(name) + " is not an integer: '" + std::string(text.substr(0, 64)) +
                 "'");
}

Error BurstOutOfRange(ThrottleStyle style) {
  const std::int64_t least = style == ThrottleStyle::kCell ? 0 : 1;
  return Invalid("max_burst must be between " + std::to_string(least) + " and " +
                 std::to_string(kMaxLimit - 1 + least));
}

constexpr std::int64_t kMaxPeriod =
    std::chrono::duration_cast<std::chrono::seconds>(kMaxWindow).count();

}  // namespace

std::optional<std::int64_t> ParseInteger(std::string_view text) noexcept {
  constexpr std::size_t kShort = 9;  // fits however it is read
  if (!text.empty() && text.size() <= kShort) {
    std::int64_t value = 0;
    std::size_t i = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      value = 10 * value + (text[i] - '0');
    }
    if (i == text.size()) {
      return value;
    }
  }
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  return ParseNumber<std::int64_t>(text);
}

Result<Quota> MakeQuota(const Rate& rate, ThrottleStyle style) {
  if (rate.max_burst < 0 || rate.max_burst >= kMaxLimit) return BurstOutOfRange(style);
  if (rate.count == 0 || rate.period == 0) {
    return Invalid("Zero rates are not supported: count_per_period and period must be at least 1");
  }
  if (rate.count < 0 || rate.count > kMaxLimit) {
    return Invalid("count_per_period must be between 1 and " + std::to_string(kMaxLimit));
  }
  if (rate.period < 0 || rate.period > kMaxPeriod) {
    return Invalid("period must be between 1 and " + std::to_string(kMaxPeriod) + " seconds");
  }
  return Quota::TokenBucket(rate.max_burst + 1, rate.count, std::chrono::seconds(rate.period));
}

const Quota* QuotaCache::Find(const Rate& rate) {
  std::uint64_t mixed = static_cast<std::uint64_t>(rate.max_burst) * 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ static_cast<std::uint64_t>(rate.count)) * 0xC2B2AE3D27D4EB4FU;
  mixed = (mixed ^ static_cast<std::uint64_t>(rate.period)) * 0x9E3779B97F4A7C15U;
  Entry& entry = entries_[mixed >> 56];
  static_assert(kEntries == 256, "the index is a byte");
  if (entry.quota && entry.rate == rate) {
    return &*entry.quota;
  }
  Result<Quota> quota = MakeQuota(rate);
  if (!quota.ok()) {
    return nullptr;
  }
  entry.rate = rate;
  entry.quota.emplace(*quota);
  return &*entry.quota;
}

Result<Throttle> ParseThrottle(const Parser& command, ThrottleStyle style) {
  if (command.count() != 5 && command.count() != 6) {
    if (style == ThrottleStyle::kCrab) {
      return Invalid("wrong number of arguments for 'throttle' command");
    }
    return Invalid("Usage: CL.THROTTLE <key> <max_burst> <count per period> <period> [<quantity>]");
  }
  const auto max_burst = ParseInteger(command[2]);
  const auto count = ParseInteger(command[3]);
  const auto period = ParseInteger(command[4]);
  if (!max_burst) return NotAnInteger("max_burst", command[2]);
  if (!count) return NotAnInteger("count_per_period", command[3]);
  if (!period) return NotAnInteger("period", command[4]);
  Throttle throttle{{*max_burst, *count, *period}, 1};
  if (style == ThrottleStyle::kCrab) {
    if (*max_burst < 1) return BurstOutOfRange(style);
    --throttle.rate.max_burst;
  }
  if (command.count() == 6) {
    const auto quantity = ParseInteger(command[5]);
    if (!quantity) return NotAnInteger("quantity", command[5]);
    if (*quantity < 0) return Invalid("quantity must not be negative; 0 checks without charging");
    throttle.quantity = *quantity;
  }
  return throttle;
}

std::chrono::nanoseconds CrabRetryOfNever(const Decision& decision, std::int64_t quantity,
                                          const Quota& quota) noexcept {
  const Int128 beyond = Int128{quantity - decision.limit} * quota.period().count() / quota.refill();
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min<Int128>(
      decision.reset_after.count() + beyond, std::chrono::nanoseconds::max().count())));
}

void WriteThrottleReply(const Decision& decision, ThrottleStyle style, Buffer& out) {
  char* const start = out.Reserve(4 + 5 * (kMaxIntegerChars + 3));
  char* at = start;
  const auto integer = [&at](std::int64_t value) {
    *at++ = ':';
    at = WriteInteger(at, value);
    *at++ = '\r';
    *at++ = '\n';
  };
  constexpr std::string_view kFive = "*5\r\n";
  at = std::copy(kFive.begin(), kFive.end(), at);
  const bool cell = style == ThrottleStyle::kCell;
  integer(decision.allowed() == cell ? 0 : 1);
  integer(decision.limit);
  integer(decision.remaining);
  integer(cell ? RetrySeconds(decision) : CeilSeconds(decision.reset_after));
  integer(CeilSeconds(cell ? decision.reset_after : decision.retry_after));
  out.Commit(static_cast<std::size_t>(at - start));
}

}  // namespace weir::resp
