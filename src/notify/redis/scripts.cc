#include "notify/redis/scripts.h"

#include <algorithm>
#include <array>

#include "base/number.h"

namespace weir::notify::redis {
namespace {

using weir::redis::Command;
using weir::redis::Reply;
using weir::redis::Script;

Error Unexpected() { return {Code::kInternal, "unexpected response from Redis"}; }

bool ReadNumber(std::string_view text, std::int64_t& number) {
  const auto read = ParseNumber<std::int64_t>(text);
  if (read) number = *read;
  return read.has_value();
}

}  // namespace

std::string CacheKey(std::string_view user_id) {
  return "RateLimiterCache:" + std::string(user_id);
}

std::string SendKey(std::string_view user_id, std::string_view key) {
  // The length keeps the names of different pairs distinct.
  return "RateLimiterSend:" + std::to_string(user_id.size()) + ':' + std::string(user_id) + ':' +
         std::string(key);
}

std::string Encode(const Remembered& send) {
  return (send.confirmed ? "1 " : "0 ") + std::to_string(send.digest) + ' ' +
         std::to_string(send.answer.rate_limit) + ' ' + std::to_string(send.answer.remaining) +
         ' ' + std::to_string(send.answer.resets_at) + ' ' + std::to_string(send.window_start) +
         ' ' + send.answer.event_id;
}

Result<Remembered> Decode(std::string_view text) {
  std::array<std::int64_t, 6> numbers{};
  for (std::int64_t& number : numbers) {
    const std::size_t end = text.find(' ');
    if (end == std::string_view::npos || !ReadNumber(text.substr(0, end), number)) {
      return Unexpected();
    }
    text.remove_prefix(end + 1);
  }
  Remembered send{numbers[1], numbers[0] == 1, numbers[5], {}};
  send.answer = {.outcome = Outcome::kSent,
                 .event_id = std::string(text),
                 .replayed = true,
                 .rate_limit = numbers[2],
                 .remaining = numbers[3],
                 .resets_at = numbers[4]};
  return send;
}

const Script& TakeScript() {
  // ARGV: now, run, digest, event id, lifetime of the key in ms.
  static const Script script(R"lua(
local h = redis.call('HMGET', KEYS[1], 'rateLimit', 'currentCount', 'windowStart', 'windowEnd',
                     'serverRun')
if KEYS[2] then
  local seen = redis.call('GET', KEYS[2])
  if seen then
    local confirmed, ends = string.match(seen, '^(%d) %-?%d+ %d+ %d+ (%d+) ')
    if confirmed ~= '0' or tonumber(ends) > tonumber(ARGV[1]) then return {'seen', seen} end
  end
end
if not (h[1] and h[2] and h[3] and h[4]) or h[5] ~= ARGV[2]
   or tonumber(h[4]) <= tonumber(ARGV[1]) then
  return {'miss'}
end
if h[1] == 'table' then return {'table'} end
local left = tonumber(h[1]) - tonumber(h[2])
if left <= 0 then return {'limited', h[1], '0', h[3], h[4]} end
redis.call('HINCRBY', KEYS[1], 'currentCount', 1)
left = string.format('%.0f', left - 1)
if KEYS[2] then
  redis.call('SET', KEYS[2],
             '0 ' .. ARGV[3] .. ' ' .. h[1] .. ' ' .. left .. ' ' .. h[4] .. ' ' .. h[3] .. ' '
             .. ARGV[4],
             'PX', ARGV[5])
end
return {'allowed', h[1], left, h[3], h[4]}
)lua");
  return script;
}

Command TakeArguments(std::string_view user_id, std::string_view send_key, Micros now,
                      std::string_view run, std::int64_t digest, std::string_view event_id) {
  Command command;
  if (send_key.empty()) {
    command.Add("1").Add(CacheKey(user_id)).Add(now).Add(run);
    return command;
  }
  command.Add("2").Add(CacheKey(user_id)).Add(send_key).Add(now).Add(run);
  command.Add(digest).Add(event_id).Add(kKeyLifetime / 1000);
  return command;
}

Result<Taken> ReadTaken(const Reply& reply) {
  if (!reply.is_array(1)) return Unexpected();
  const std::string& word = reply.elements[0].text;
  Taken taken;
  if (word == "miss") return taken;
  if (word == "table") {
    taken.kind = Taken::Kind::kTable;
    return taken;
  }
  if (word == "seen" && reply.is_array(2)) {
    taken.kind = Taken::Kind::kSeen;
    taken.seen = reply.elements[1].text;
    return taken;
  }
  if (!reply.is_array(5) || (word != "limited" && word != "allowed")) return Unexpected();
  taken.kind = word == "limited" ? Taken::Kind::kLimited : Taken::Kind::kAllowed;
  const bool read = ReadNumber(reply.elements[1].text, taken.rate_limit) &&
                    ReadNumber(reply.elements[2].text, taken.remaining) &&
                    ReadNumber(reply.elements[3].text, taken.window_start) &&
                    ReadNumber(reply.elements[4].text, taken.window_end);
  if (!read) return Unexpected();
  return taken;
}

const Script& FillScript() {
  // ARGV: rateLimit, currentCount, windowStart, windowEnd, run, now, time to live in ms.
  static const Script script(R"lua(
local h = redis.call('HMGET', KEYS[1], 'currentCount', 'windowStart', 'windowEnd', 'serverRun',
                     'rateLimit')
local count = tonumber(ARGV[2])
if h[1] and h[2] and h[3] then
  if h[4] == ARGV[5] and tonumber(h[3]) > tonumber(ARGV[6]) then return 0 end
  if h[2] == ARGV[3] then count = math.max(count, tonumber(h[1])) end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'rateLimit', ARGV[1], 'currentCount', string.format('%.0f', count),
           'windowStart', ARGV[3], 'windowEnd', ARGV[4], 'serverRun', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return 1
)lua");
  return script;
}

Command FillArguments(const UserLimit& limit, Micros now, std::string_view run) {
  Command command;
  command.Add("1").Add(CacheKey(limit.user_id));
  command.Add(limit.has_channels ? "table" : std::to_string(limit.rate_limit));
  command.Add(limit.current_count);
  command.Add(limit.last_refresh_time).Add(limit.window_end()).Add(run).Add(now);
  // Exactly the rest of the window, which is at most its length.
  const Micros whole = limit.time_window * kMicrosPerMinute;
  command.Add(std::clamp<Micros>(limit.window_end() - now, 1000, whole) / 1000);
  return command;
}

}  // namespace weir::notify::redis
