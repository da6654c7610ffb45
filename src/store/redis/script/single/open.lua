-- One charge of one key, which is what most calls are: as apply.lua decides it, but with plain
-- numbers only and nothing that other calls would need. Where that is not enough (times more than
-- 2^51 ns apart, a state of another width, a damaged one) the answer is empty, nothing was done, and
-- the caller asks apply.lua.
--
-- ARGV[1]: the reference in seconds and in its two words, the high word of the step in which the new
-- state is expected to end, then six numbers of the shape. ARGV[2]: when that step is over, in
-- milliseconds, as text, since Lua takes long to write a number. ARGV[3]: now, counted from the
-- reference; missing, the server's clock decides. Answers now, counted from the reference, and the
-- state as it was before.

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
local v = redis.pcall('GET', key) -- of another type: a table, whose length is no state's
-- The new state, the high word of its end, and whether the key may keep its expiry; or the part of the
-- new state that differs and its place, if the key may and nothing moves.
local new, end_h, keeps, place
