#include "notify/notify.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace weir::notify {
namespace {

constexpr char kBetween = '\x1f';

Status CheckRange(const char* field, std::int64_t value, std::int64_t high) {
  if (value >= 1 && value <= high) return {};
  return Invalid(std::string(field) + " must be a whole number from 1 to " + std::to_string(high) +
                 ", got " + std::to_string(value));
}

}  // namespace

Micros NowMicros(const Clock& clock) noexcept { return clock.Now() / 1000; }

Status CheckUserId(std::string_view user_id) {
  if (user_id.empty()) return Invalid("userId must not be empty");
  if (user_id.size() > kMaxUserIdBytes) {
    return Invalid("userId must not be longer than " + std::to_string(kMaxUserIdBytes) + " bytes");
  }
  if (!IsPrintableUtf8(user_id)) {
    return Invalid("userId must be UTF-8 without control characters");
  }
  return {};
}

Status CheckChannel(std::string_view channel) {
  const bool known = std::all_of(channel.begin(), channel.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (known && !channel.empty() && channel.size() <= kMaxChannelBytes) return {};
  return Invalid("channel must have 1 to " + std::to_string(kMaxChannelBytes) +
                 " characters of a-z, 0-9, - and _");
}

std::string ChannelKey(std::string_view user_id, std::string_view channel) {
  std::string key(user_id);
  key += kBetween;
  return key.append(channel);
}

RowName SplitRowName(std::string_view name) noexcept {
  const std::size_t at = name.find(kBetween);
  if (at == std::string_view::npos) return {name, {}};
  return {name.substr(0, at), name.substr(at + 1)};
}

Status CheckLimit(const UserLimit& limit) {
  if (Status s = CheckUserId(limit.user_id); !s.ok()) return s;
  if (Status s = CheckRange("rateLimit", limit.rate_limit, kMaxRateLimit); !s.ok()) return s;
  return CheckRange("timeWindow", limit.time_window, kMaxTimeWindow);
}

Status CheckSend(const SendRequest& request) {
  if (Status s = CheckUserId(request.user_id); !s.ok()) return s;
  if (request.message.empty()) return Invalid("message must not be empty");
  if (request.message.size() > kMaxMessageBytes) {
    return Invalid("message must not be longer than " + std::to_string(kMaxMessageBytes) +
                   " bytes");
  }
  // Zero bytes separate the parts of an event's fingerprint (event.cc).
  if (request.message.find('\0') != std::string::npos) {
    return Invalid("message must not contain zero bytes");
  }
  if (request.idempotency_key.size() > kMaxIdempotencyKeyBytes) {
    return Invalid("Idempotency-Key must not be longer than " +
                   std::to_string(kMaxIdempotencyKeyBytes) + " bytes");
  }
  // A database that accepts only UTF-8 would reject it, and everything sent together with it.
  if (!IsPrintableUtf8(request.idempotency_key)) {
    return Invalid("Idempotency-Key must be UTF-8 without control characters");
  }
  if (Status s = CheckChannel(request.channel); !s.ok()) return s;
  if (request.recipient.size() > kMaxRecipientBytes) {
    return Invalid("recipient must not be longer than " + std::to_string(kMaxRecipientBytes) +
                   " bytes");
  }
  if (!IsPrintableUtf8(request.recipient)) {
    return Invalid("recipient must be UTF-8 without control characters");
  }
  return {};
}

}  // namespace weir::notify
