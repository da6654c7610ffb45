#include "admin/redis/scripts.h"

#include <string>
#include <string_view>

namespace weir::policy::redis {
namespace {

// Whether the state includes what a node knows: the changes of an epoch up to a number. It includes
// those of its own epoch up to its count, and of others what was restored. A state without an epoch
// was written by weir 0.2.
constexpr std::string_view kHas = R"(
local function has(epoch, changes)
  local s = redis.call('HMGET', KEYS[1], 'changes', 'epoch', 'of:' .. epoch)
  local count, known = tonumber(s[1] or 0), tonumber(changes)
  if count == 0 then return false end
  return ((s[2] or '') == epoch and count >= known) or tonumber(s[3] or -1) >= known
end
)";

std::string WithHas(std::string_view body) { return std::string(kHas).append(body); }

}  // namespace

std::string TargetKey(std::string_view target) {
  return std::string("weir:{weir-policies}:of:").append(target).append("#");
}

const Script& CountScript() {
  static const Script script(WithHas(R"(
local s = redis.call('HMGET', KEYS[1], 'changes', 'format')
return {tonumber(s[1] or 0), tonumber(s[2] or 1), has(ARGV[1], ARGV[2]) and 1 or 0}
)"));
  return script;
}

const Script& PageScript() {
  static const Script script(R"(
local page = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', ARGV[2])
local s = redis.call('HMGET', KEYS[1], 'changes', 'epoch')
local past = {}
if ARGV[1] == '0' then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 3) == 'of:' then
      past[#past + 1] = string.sub(all[i], 4)
      past[#past + 1] = all[i + 1]
    end
  end
end
return {tonumber(s[1] or 0), page[1], page[2], s[2] or '', past}
)");
  return script;
}

const Script& LookScript() {
  static const Script script(WithHas(R"(
local s = redis.call('HMGET', KEYS[1], 'changes', 'last_policy', 'epoch')
local id = redis.call('ZREVRANGE', KEYS[4], 0, 0)[1]
local entry = id and redis.call('HGET', KEYS[3], id)
return {tonumber(s[1] or 0), tonumber(s[2] or 0), redis.call('HGET', KEYS[2], ARGV[1]) or '',
        redis.call('HLEN', KEYS[2]), tonumber(id or 0), entry or '', s[3] or '',
        has(ARGV[2], ARGV[3]) and 1 or 0}
)"));
  return script;
}

const Script& MakeScript() {
  static const Script script(R"(
local s = redis.call('HMGET', KEYS[1], 'changes', 'epoch')
if tonumber(s[1] or 0) ~= tonumber(ARGV[1]) or (s[2] or '') ~= ARGV[6] then return -1 end
if ARGV[6] == '' then redis.call('HSET', KEYS[1], 'epoch', ARGV[7], 'of:', ARGV[1]) end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[2], ARGV[2])
else
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
end
local id = redis.call('HINCRBY', KEYS[1], 'last_entry', 1)
redis.call('HSET', KEYS[3], id, ARGV[5])
for i = 4, 6 do redis.call('ZADD', KEYS[i], id, id) end
redis.call('HSET', KEYS[1], 'last_policy', ARGV[4], 'format', 1)
return redis.call('HINCRBY', KEYS[1], 'changes', 1)
)");
  return script;
}

const Script& AppendScript() {
  static const Script script(R"(
local id = redis.call('HINCRBY', KEYS[1], 'last_entry', 1)
redis.call('HSET', KEYS[2], id, ARGV[1])
redis.call('ZADD', KEYS[3], id, id)
if ARGV[2] == '1' then redis.call('ZADD', KEYS[4], id, id) end
redis.call('ZADD', KEYS[5], id, id)
return id
)");
  return script;
}

const Script& ListScript() {
  static const Script script(R"(
local before = ARGV[1] == '0' and '+inf' or '(' .. ARGV[1]
local ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], before, '-inf', 'LIMIT', 0, ARGV[2])
local out = {}
for _, id in ipairs(ids) do
  out[#out + 1] = id
  out[#out + 1] = redis.call('HGET', KEYS[2], id) or ''
end
return out
)");
  return script;
}

const Script& FindScript() {
  static const Script script("return redis.call('HGET', KEYS[1], ARGV[1]) or ''");
  return script;
}

const Script& OldestScript() {
  static const Script script(R"(
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])
local out = {}
for _, id in ipairs(ids) do
  out[#out + 1] = id
  out[#out + 1] = redis.call('HGET', KEYS[3], id) or ''
end
return {tonumber(redis.call('HGET', KEYS[1], 'last_entry') or 0), out}
)");
  return script;
}

const Script& TrimScript() {
  static const Script script(R"(
local there = ARGV[1] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
local gone = 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local later = there and redis.call('ZCOUNT', KEYS[5], '(' .. id, '+inf')
  if not there or later >= tonumber(ARGV[2]) then
    gone = gone + redis.call('HDEL', KEYS[2], id)
    for k = 3, 5 do redis.call('ZREM', KEYS[k], id) end
  end
end
return gone
)");
  return script;
}

const Script& PutBackScript() {
  static const Script script(WithHas(R"(
if has(ARGV[1], ARGV[2]) then return 0 end
for i = 3, #ARGV, 2 do redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) end
return 1
)"));
  return script;
}

// Keeps an epoch that others have started meanwhile: they have seen all of this state.
const Script& FinishScript() {
  static const Script script(WithHas(R"(
if has(ARGV[1], ARGV[2]) then return 0 end
local s = redis.call('HMGET', KEYS[1], 'changes', 'epoch', 'last_policy')
local changes, epoch = tonumber(s[1] or 0), s[2] or ''
if epoch == '' or epoch == ARGV[1] then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[5], 'of:' .. epoch, changes)
end
for i = 6, #ARGV, 2 do
  local field, upto = 'of:' .. ARGV[i], tonumber(ARGV[i + 1])
  if tonumber(redis.call('HGET', KEYS[1], field) or -1) < upto then
    redis.call('HSET', KEYS[1], field, upto)
  end
end
redis.call('HSET', KEYS[1], 'of:' .. ARGV[1], ARGV[2],
           'changes', math.max(changes, tonumber(ARGV[2])) + tonumber(ARGV[3]),
           'last_policy', math.max(tonumber(s[3] or 0), tonumber(ARGV[4])), 'format', 1)
return 1
)"));
  return script;
}

}  // namespace weir::policy::redis
