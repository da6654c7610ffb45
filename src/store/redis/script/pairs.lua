-- Decides many applications in one call, exactly as src/algorithm does. It changes states and
-- returns what each charge found; from that the caller works out its decision with the C++ step
-- itself.
--
-- Lua's numbers hold 53 bits, times and windows need 63: they are pairs (hi, lo) in base 2^32, hi
-- signed, which is also their form in the stored states (docs/design/state-format.md). Times are
-- relative to a reference that the caller sends, near enough to now that the difference is exact.
--
-- KEYS: one per key and algorithm. ARGV[1]: the clock and the counts of what follows. ARGV[2]:
-- quotas. ARGV[3]: terms, each a quota and a cost. ARGV[4]: the applications. Returns now, then
-- what each charge found; or {"stale", seconds, microseconds} if the reference is too far away, and
-- then nothing was done.

local B = 4294967296
local NEAR = 524288 -- a high word closer than this to the reference's: less than 2^51 from it
local LATEST_H, LATEST_L = 1412724991, 4221370367
local MAX_ENTRIES = 1048576
local MAX_COUNT = 2199023255552
local unpack_s, pack_s, floor, char = struct.unpack, struct.pack, math.floor, string.char
local call = redis.call

local injected, ref_l, ref_h, ref_seconds, ref_nanos, since_ref, quota_count, term_count =
  unpack_s('<BI4i4dddHH', ARGV[1])
if injected == 0 then
  local time = call('TIME')
  since_ref = (time[1] - ref_seconds) * 1e9 + time[2] * 1000 - ref_nanos
  if since_ref > 2 ^ 51 or since_ref < -2 ^ 51 then return { 'stale', time[1], time[2] } end
end
local now_h, now_l = ref_h + floor((ref_l + since_ref) / B), (ref_l + since_ref) % B

-- Arithmetic of pairs.

local function less(ah, al, bh, bl) return ah < bh or (ah == bh and al < bl) end

local function add(ah, al, bh, bl)
  local l = al + bl
  if l >= B then return ah + bh + 1, l - B end
  return ah + bh, l
end

local function sub(ah, al, bh, bl)
  local l = al - bl
  if l < 0 then return ah - bh - 1, l + B end
  return ah - bh, l
end

local function number(h, l) return h * B + l end -- rounded beyond 2^53
local function pair(x) return floor(x / B), x % B end

local function signed(h)
  h = h % B
  return h >= 2147483648 and h - B or h
end

local function multiply_words(a, b)
  local a1 = floor(a / 65536)
  local p0, p1 = (a - a1 * 65536) * b, a1 * b
  local l = p0 + (p1 % 65536) * 65536
  return floor(p1 / 65536) + floor(l / B), l % B
end

-- Modulo 2^64.
local function multiply(ah, al, bh, bl)
  local h, l = multiply_words(al, bl)
  local _, x = multiply_words(ah % B, bl)
  local _, y = multiply_words(al, bh % B)
  return signed(h + x + y), l
end

-- Rounded down. Guesses with rounded numbers and corrects the guess by what is left.
local function divide(rest_h, rest_l, by_h, by_l)
  local h, l = 0, 0
  while true do
    local guess = floor(number(rest_h, rest_l) / number(by_h, by_l))
    if rest_h < 0 then
      if guess >= 0 then guess = -1 end
    elseif less(rest_h, rest_l, by_h, by_l) then
      return h, l
    elseif guess < 1 then
      guess = 1
    end
    local gh, gl = pair(guess)
    h, l = add(h, l, gh, gl)
    rest_h, rest_l = sub(rest_h, rest_l, multiply(gh, gl, by_h, by_l))
    rest_h = signed(rest_h)
  end
end

-- a * (h, l) in three words, lowest first. Requires a <= 2^41.
local function product(a, h, l)
  local a1 = floor(a / 2097152)
  local a0 = a - a1 * 2097152
  local function times(word)
    local p0, p1 = a0 * word, a1 * word
    local low = p0 % B + (p1 % 2048) * 2097152
    return floor(p0 / B) + floor(p1 / 2048) + floor(low / B), low % B
  end
  local xh, xl = times(l)
  local yh, yl = times(h)
  local middle = xh + yl
  return xl, middle % B, yh + floor(middle / B)
end
