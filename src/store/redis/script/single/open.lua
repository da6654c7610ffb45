-- One charge of one key, which is what most calls are: decided as in apply.lua, but with plain
-- numbers only and without anything that only other calls need. Where that is not enough (times
-- more than 2^51 ns apart, a state of another width, a damaged one) the result is empty, nothing
-- was done, and the caller runs apply.lua.
--
-- ARGV[1]: the reference in seconds and in its two words, the high word of the step in which the
-- new state is expected to end, then six numbers of the shape. ARGV[2]: the end of that step in
-- milliseconds, as text, since formatting a number is slow in Lua. ARGV[3]: now, relative to the
-- reference; if missing, the server's clock is used. Returns now, relative to the reference, and
-- the state as it was before.

local unpack_s, pack_s, call, key, injected = struct.unpack, struct.pack, redis.call, KEYS[1], ARGV[3]
local ref_s, ref_h, ref_l, step_h, a, b, c, d, e, f = unpack_s('<dddddddddd', ARGV[1])
local now
if injected then
  now = tonumber(injected)
else
  local time = call('TIME')
  now = (time[1] - ref_s) * 1e9 + time[2] * 1000
end
if now > 2251799813685248 or now < -2251799813685248 then return '' end
local v = redis.pcall('GET', key) -- another type gives a table, whose length fits no state
-- The new state, the high word of its end, and whether the key may keep its expiry; if it may and
-- the size is unchanged, only the part of the new state that differs, and its place.
local new, end_h, keeps, place
