-- Decides many applications in one call, exactly as src/algorithm does. It changes states and says
-- what each charge found; the caller works out its decision from that with the C++ step itself.
--
-- Lua's numbers hold 53 bits, times and windows need 63: they are pairs (hi, lo) in base 2^32, hi
-- signed, and lie so in the states' bytes (docs/design/state-format.md). Times are related to a
-- reference that the caller sends, near enough to now that the difference is exact.
--
-- KEYS: one per key and algorithm. ARGV[1]: the clock and the counts of what follows. ARGV[2]:
-- quotas, ARGV[3]: applications. Answers now, then what each charge found; or {"stale", seconds,
-- microseconds} if the reference is too far away, and then nothing was done.

local B = 4294967296
local LATEST_H, LATEST_L = 1412724991, 4221370367
local MAX_ENTRIES = 1048576
local MAX_COUNT = 2199023255552
local unpack_s, pack_s, floor, char = struct.unpack, struct.pack, math.floor, string.char

local injected, ref_l, ref_h, ref_seconds, ref_nanos, since_ref, quota_count, application_count =
  unpack_s('<BI4i4dddHH', ARGV[1])
if injected == 0 then
  local time = redis.call('TIME')
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

-- Quotas.

local quotas = {}
for i = 1, quota_count do
  local q = {}
  q.algorithm, q.limit, q.wl, q.wh, q.frac, q.refill, q.al, q.ah, q.pl, q.ph, q.slots =
    unpack_s('<BdI4i4I4I4I4i4I4i4H', ARGV[2], (i - 1) * 43 + 1)
  quotas[i] = q
end

-- Where now is among the windows (buckets) of width w that begin at multiples of w: how many after
-- the reference's, and how far into its own. The reference was (ph, pl) into its own.
local function locate(q)
  if q.steps then return end
  if q.wh < 1048576 then
    local w, x = number(q.wh, q.wl), number(q.ph, q.pl) + since_ref
    local steps = floor(x / w)
    local elapsed = x - steps * w
    if elapsed < 0 then steps, elapsed = steps - 1, elapsed + w end
    if elapsed >= w then steps, elapsed = steps + 1, elapsed - w end
    q.steps, q.eh, q.el = steps, pair(elapsed)
    return
  end
  q.eh, q.el = add(q.ph, q.pl, pair(since_ref))
  q.steps = 0
  if q.eh < 0 then
    q.steps, q.eh, q.el = -1, add(q.eh, q.el, q.wh, q.wl)
  elseif not less(q.eh, q.el, q.wh, q.wl) then
    q.steps, q.eh, q.el = 1, sub(q.eh, q.el, q.wh, q.wl)
  end
end

-- States: what stands in Redis, with what this call has changed.

local value = #KEYS > 0 and redis.call('MGET', unpack(KEYS)) or {}
local lifetime = {} -- of changed values: nanoseconds, or -1: as before

-- Charges: (state, quota, cost, argument) -> (granted, new state, its lifetime). A charge that is
-- only a look is granted and changes nothing.

local function debt_of(v, q)
  local l, h, frac = unpack_s('<I4i4I4', v)
  if less(h, l, now_h, now_l) then return 0, 0, 0 end
  h, l = sub(h, l, now_h, now_l)
  if frac < q.refill then return h, l, frac end
  h, l = add(h, l, 0, 1)
  return h, l, 0
end

local function charge_token_bucket(v, q, cost, tl, th, tf)
  if cost <= 0 then return true end
  if cost > q.limit then return false end
  local h, l, frac = 0, 0, 0
  if v then h, l, frac = debt_of(v, q) end
  h, l = add(h, l, th, tl)
  frac = frac + tf
  if frac >= q.refill then
    frac = frac - q.refill
    h, l = add(h, l, 0, 1)
  end
  if less(q.wh, q.wl, h, l) or (q.wh == h and q.wl == l and q.frac < frac) then return false end
  local fh, fl = add(now_h, now_l, h, l)
  return true, pack_s('<I4i4I4', fl, fh, frac), number(h, l) + 1
end

local function refund_token_bucket(v, q, cost, tl, th, tf)
  if not v or cost <= 0 then return end
  local h, l, frac = debt_of(v, q)
  if h == 0 and l == 0 and frac == 0 then return end
  if less(th, tl, h, l) or (th == h and tl == l and tf < frac) then
    h, l = sub(h, l, th, tl)
    frac = frac - tf
    if frac < 0 then
      frac = frac + q.refill
      h, l = sub(h, l, 0, 1)
    end
  else
    h, l, frac = 0, 0, 0
  end
  h, l = add(now_h, now_l, h, l)
  return pack_s('<I4i4I4', l, h, frac)
end

-- End of the window in force, and what was granted in it.
local function window_of(v, q)
  locate(q)
  local start_h, start_l = sub(now_h, now_l, q.eh, q.el)
  local end_h, end_l = add(start_h, start_l, q.wh, q.wl)
  if not v then return end_h, end_l, 0 end
  local kept_l, kept_h, count_l, count_h = unpack_s('<I4i4I4i4', v)
  if not less(start_h, start_l, kept_h, kept_l) then return end_h, end_l, 0 end
  if less(end_h, end_l, kept_h, kept_l) then end_h, end_l = kept_h, kept_l end
  return end_h, end_l, number(count_h, count_l)
end

local function pack_window(h, l, count)
  local count_h, count_l = pair(count)
  return pack_s('<I4i4I4i4', l, h, count_l, count_h)
end

local function charge_fixed_window(v, q, cost)
  if cost <= 0 then return true end
  local h, l, count = window_of(v, q)
  if cost > q.limit - count then return false end
  return true, pack_window(h, l, count + cost), number(sub(h, l, now_h, now_l))
end

local function refund_fixed_window(v, q, cost)
  if not v or cost <= 0 then return end
  local h, l, count = window_of(v, q)
  if count == 0 then return end
  return pack_window(h, l, count - math.min(count, cost))
end

-- Sliding counters: counts[1] is the newest bucket.

local function read_counts(v)
  local counts, n, sum, scale = {}, 0, 0, 1
  local bytes = { string.byte(v, 19, -1) }
  for i = 1, #bytes do
    local byte = bytes[i]
    if byte < 128 then
      n = n + 1
      counts[n] = sum + byte * scale
      sum, scale = 0, 1
    else
      sum, scale = sum + (byte - 128) * scale, scale * 128
    end
  end
  return counts, n
end

local function write_counts(head, counts, n)
  while n > 0 and counts[n] == 0 do n = n - 1 end
  local parts = { head }
  for i = 1, n do
    local count = counts[i]
    while count >= 128 do
      parts[#parts + 1] = char(128 + count % 128)
      count = floor(count / 128)
    end
    parts[#parts + 1] = char(count)
  end
  return table.concat(parts)
end

-- The counts in buckets of the quota's width, and the index of the newest. A state of another width
-- is sorted anew by the last nanosecond of each of its buckets.
local function buckets_of(v, q)
  local il, ih, wl, wh = unpack_s('<I4i4I4i4', v)
  local counts, n = read_counts(v)
  if wl == q.wl and wh == q.wh then return counts, math.min(n, q.slots + 1), ih, il end
  local function index(age)
    local h, l = add(ih, il, pair(1 - age))
    h, l = multiply(h, l, wh, wl)
    h, l = sub(h, l, 0, 1)
    if less(LATEST_H, LATEST_L, h, l) then h, l = LATEST_H, LATEST_L end
    return divide(h, l, q.wh, q.wl)
  end
  local newest_h, newest_l = index(0)
  local sorted, size = {}, 0
  for age = 0, n - 1 do
    local behind = number(sub(newest_h, newest_l, index(age)))
    if behind <= q.slots then
      while size <= behind do
        size = size + 1
        sorted[size] = 0
      end
      sorted[behind + 1] = math.min(sorted[behind + 1] + counts[age + 1], MAX_COUNT)
    end
  end
  return sorted, size, newest_h, newest_l
end

-- How many buckets the current one is after the newest; slots + 1 stands for all out.
local function shift_of(current_h, current_l, newest_h, newest_l, slots)
  return math.min(number(sub(current_h, current_l, newest_h, newest_l)), slots + 1)
end

-- True if partial * (w - elapsed) / w, rounded up, is at most room.
local function share_fits(partial, q, eh, el, room)
  if room < 0 then return false end
  if partial <= room then return true end
  local left_h, left_l = sub(q.wh, q.wl, eh, el)
  local a, b = partial * number(left_h, left_l), room * number(q.wh, q.wl)
  if a < b * (1 - 1e-12) then return true end
  if a > b * (1 + 1e-12) then return false end
  local a0, a1, a2 = product(partial, left_h, left_l)
  local b0, b1, b2 = product(room, q.wh, q.wl)
  if a2 ~= b2 then return a2 < b2 end
  if a1 ~= b1 then return a1 < b1 end
  return a0 <= b0
end

local function charge_sliding_counter(v, q, cost)
  if cost <= 0 then return true end
  locate(q)
  local h, l = add(q.ah, q.al, pair(q.steps))
  local eh, el, ahead = q.eh, q.el, 0
  local counts, n, shift, full, partial = {}, 0, 0, 0, 0
  if v then
    local newest_h, newest_l
    counts, n, newest_h, newest_l = buckets_of(v, q)
    if less(h, l, newest_h, newest_l) then
      ahead = number(sub(newest_h, newest_l, h, l))
      h, l, eh, el = newest_h, newest_l, 0, 0
    end
    shift = shift_of(h, l, newest_h, newest_l, q.slots)
    for i = 1, math.min(n, q.slots - shift) do full = full + counts[i] end
    partial = counts[q.slots - shift + 1] or 0
    if q.slots - shift + 1 > n then partial = 0 end
  end
  if not share_fits(partial, q, eh, el, q.limit - full - cost) then return false end
  local moved, kept = {}, math.min(n, q.slots + 1 - shift)
  if kept > 0 then
    for i = 1, shift do moved[i] = 0 end
    for i = 1, kept do moved[shift + i] = counts[i] end
  end
  moved[1] = (moved[1] or 0) + cost
  local head = pack_s('<I4i4I4i4H', l, h, q.wl, q.wh, q.slots)
  local width = number(q.wh, q.wl)
  return true, write_counts(head, moved, #moved), (q.slots + 1 + ahead) * width - number(eh, el)
end

-- In the state's own width, whatever the quota's.
local function refund_sliding_counter(v, _, cost)
  if not v then return end
  local il, ih, wl, wh, slots = unpack_s('<I4i4I4i4H', v)
  local counts, n = read_counts(v)
  local h, l = divide(now_h, now_l, wh, wl)
  if less(h, l, ih, il) then h, l = ih, il end
  local seen = math.min(n, slots + 1 - shift_of(h, l, ih, il, slots))
  for i = 1, seen do
    local back = math.min(counts[i], cost)
    if back > 0 then
      counts[i] = counts[i] - back
      cost = cost - back
    end
  end
  return write_counts(string.sub(v, 1, 18), counts, n)
end

-- Logs: a header and a list of entries, oldest first. What a charge changes stays in the log's
-- table until the application is granted.

local logs = {} -- of the current application

local function open_log(k)
  local log = logs[k]
  if log then return log end
  log = { list = KEYS[k] .. 'e', drop = 0, push = {}, total = 0, count = 0, given_back = 0 }
  local v = value[k]
  if v then
    log.nl, log.nh, log.ml, log.mh, log.total, log.count, log.given_back =
      unpack_s('<I4i4I4i4ddB', v)
  end
  log.stored = log.count
  logs[k] = log
  return log
end

local function pack_entry(l, h, cost)
  if cost == 1 then return pack_s('<I4i4', l, h) end
  return pack_s('<I4i4d', l, h, cost)
end

-- Time and cost of entry i of those not dropped, from 0.
local function entry(log, i)
  local at = log.drop + i
  local packed
  if at >= log.stored then
    packed = log.push[at - log.stored + 1]
  elseif log.replaced and at == log.stored - 1 then
    packed = log.replaced
  else
    local chunk = log.chunk
    if not chunk or at < log.chunk_at or at >= log.chunk_at + #chunk then
      chunk = redis.call('LRANGE', log.list, at, at + (chunk and 255 or 7))
      log.chunk, log.chunk_at = chunk, at
    end
    packed = chunk[at - log.chunk_at + 1]
  end
  if not packed then return nil end
  local l, h = unpack_s('<I4i4', packed)
  local cost = #packed > 8 and unpack_s('<d', packed, 9) or 1
  if log.given_back == 1 and i == log.count - 1 then cost = 0 end
  return h, l, cost
end

-- Cost and count of the entries at or before a time.
local function prefix_through(log, th, tl)
  if log.count == 0 then return 0, 0 end
  if not less(th, tl, log.nh, log.nl) then return log.total, log.count end
  local sum, count = 0, 0
  while count < log.count do
    local h, l, cost = entry(log, count)
    if not h or less(th, tl, h, l) then break end
    sum, count = sum + cost, count + 1
  end
  return sum, count
end

local function time_at_sum(log, cost)
  local sum = 0
  for i = 0, log.count - 1 do
    local h, l, c = entry(log, i)
    if not h then break end
    sum = sum + c
    if sum >= cost then return h, l end
  end
  return log.nh, log.nl
end

local function newest_charge(log)
  if log.given_back == 0 then return log.nh, log.nl end
  local h, l = entry(log, log.count - 2)
  return h or log.nh, l or log.nl
end

local function append(log, expired_cost, expired_count, h, l, cost, mark_h, mark_l)
  log.total, log.count = log.total - expired_cost, log.count - expired_count
  log.drop = log.drop + expired_count
  if log.count == 0 then
    log.drop, log.push, log.replaced, log.total, log.count = log.stored, {}, nil, 0, 1
    log.push[1] = pack_entry(l, h, cost)
  elseif (log.nh == h and log.nl == l) or log.given_back == 1 or log.count >= MAX_ENTRIES then
    local _, _, kept = entry(log, log.count - 1)
    local joined = pack_entry(l, h, (kept or 0) + cost)
    if #log.push > 0 then log.push[#log.push] = joined else log.replaced = joined end
  else
    log.push[#log.push + 1] = pack_entry(l, h, cost)
    log.count = log.count + 1
  end
  log.nh, log.nl, log.mh, log.ml = h, l, mark_h, mark_l
  log.total, log.given_back = log.total + cost, 0
end

local function save_header(k, log, nanoseconds)
  value[k] = pack_s('<I4i4I4i4ddB', log.nl, log.nh, log.ml, log.mh, log.total, log.count,
    log.given_back)
  if nanoseconds or not lifetime[k] then lifetime[k] = nanoseconds or -1 end
end

local function milliseconds(nanoseconds) return string.format('%.0f', floor(nanoseconds / 1e6) + 2) end

-- Writes what charges have changed. The list outlives its header, which says what of it counts.
local function save_log(k, log)
  if not log.lifetime then return end
  if not value[k] or log.drop >= log.stored then
    redis.call('DEL', log.list)
  else
    if log.replaced then redis.call('LSET', log.list, -1, log.replaced) end
    if log.drop > 0 then redis.call('LTRIM', log.list, log.drop, -1) end
  end
  for i = 1, #log.push do redis.call('RPUSH', log.list, log.push[i]) end
  if injected == 0 then
    redis.call('PEXPIRE', log.list, milliseconds(log.lifetime + 1e9))
  end
  save_header(k, log, log.lifetime)
end

local GRANTED, REFUSED, FULL, RELEASED = 1, 0, 2, 3

local function found(kind, used, h, l, then_h, then_l)
  return pack_s('<BdI4i4I4i4', kind, used, l or 0, h or 0, then_l or 0, then_h or 0)
end

-- What a log says of itself: used, the time of its newest charge, and when `cost` fits.
local function describe(log, q, used, expired_cost, cost, full)
  local h, l, then_h, then_l
  if used > 0 then h, l = newest_charge(log) end
  local room = math.max(q.limit - used, 0)
  if cost > room and cost <= q.limit then
    then_h, then_l = time_at_sum(log, log.total + cost - q.limit)
  elseif full and cost > 0 and cost <= room then
    then_h, then_l = time_at_sum(log, expired_cost + 1)
    return found(FULL, used, h, l, then_h, then_l)
  end
  return found(REFUSED, used, h, l, then_h, then_l)
end

-- The time of the key, which never goes back, and what has expired by then.
local function look(log, q)
  local h, l = now_h, now_l
  if log.count == 0 then return h, l, 0, 0 end
  if q.algorithm == 2 then
    if less(h, l, log.nh, log.nl) then h, l = log.nh, log.nl end
    return h, l, prefix_through(log, sub(h, l, q.wh, q.wl))
  end
  if less(h, l, log.mh, log.ml) then h, l = log.mh, log.ml end
  return h, l, prefix_through(log, h, l)
end

local function is_full(log, q, expired_count)
  return q.algorithm == 4 and log.count - expired_count >= MAX_ENTRIES
end

local function peek_log(k, q, cost)
  local log = open_log(k)
  local _, _, expired_cost, expired_count = look(log, q)
  return describe(log, q, log.total - expired_cost, expired_cost, cost,
    is_full(log, q, expired_count))
end

local function charge_log(k, q, cost)
  local log = open_log(k)
  local h, l, expired_cost, expired_count = look(log, q)
  local used = log.total - expired_cost
  local full = is_full(log, q, expired_count)
  if cost <= 0 then return true, describe(log, q, used, expired_cost, cost, full) end
  if cost > q.limit - used or full then
    return false, describe(log, q, used, expired_cost, cost, full)
  end
  local end_h, end_l
  if q.algorithm == 2 then
    append(log, expired_cost, expired_count, h, l, cost, q.wh, q.wl)
    end_h, end_l = add(h, l, q.wh, q.wl)
  else
    local time_h, time_l = h, l
    h, l = add(now_h, now_l, q.wh, q.wl)
    if log.count > 0 then
      local next_h, next_l = add(log.nh, log.nl, 0, 1)
      if less(h, l, next_h, next_l) then h, l = next_h, next_l end
    end
    if h == 0 and l == 0 then l = 1 end
    append(log, expired_cost, expired_count, h, l, cost, time_h, time_l)
    end_h, end_l = h, l
  end
  log.lifetime = number(sub(end_h, end_l, now_h, now_l))
  return true, found(GRANTED, used, h, l)
end

-- A list that was empty for a moment has lost its lifetime.
local function keep_list(k, log)
  local left = redis.call('PTTL', KEYS[k])
  if lifetime[k] and lifetime[k] >= 0 then left = lifetime[k] / 1e6 end
  if injected == 0 and left >= 0 then
    redis.call('PEXPIRE', log.list, milliseconds(left * 1e6 + 1e9))
  end
end

-- Takes `cost` off the newest entries. The time of the newest stays, as an entry without a cost.
local function remove_newest(k, log, cost)
  log.total = log.total - cost
  local last_h, last_l
  while log.count > 0 do
    local h, l, c = entry(log, log.count - 1)
    if not h then break end
    last_h, last_l = h, l
    if cost == 0 and c > 0 then break end
    if c > cost then
      redis.call('LSET', log.list, -1, pack_entry(l, h, c - cost))
      break
    end
    redis.call('RPOP', log.list)
    cost, log.count, log.given_back, last_h = cost - c, log.count - 1, 0, nil
  end
  if not last_h or last_h ~= log.nh or last_l ~= log.nl then
    redis.call('RPUSH', log.list, pack_entry(log.nl, log.nh, 1))
    log.count, log.given_back = log.count + 1, 1
  end
  keep_list(k, log)
  save_header(k, log)
  logs[k] = nil
end

local function refund_log(k, q, cost)
  local log = open_log(k)
  local _, _, expired_cost = look(log, q)
  local back = math.min(cost, log.total - expired_cost)
  if back > 0 then remove_newest(k, log, back) end
  return peek_log(k, q, 0)
end

-- Index and cost of the entry of exactly that time.
local function find_entry(log, h, l)
  local low, high = 0, log.count - 1
  while low <= high do
    local middle = floor((low + high) / 2)
    log.chunk = nil
    local eh, el, cost = entry(log, middle)
    if not eh then return nil end
    if eh == h and el == l then return middle, cost end
    if less(eh, el, h, l) then low = middle + 1 else high = middle - 1 end
  end
  return nil
end

local function release(k, q, l, h)
  local log = open_log(k)
  local time_h, time_l = look(log, q)
  if log.count == 0 or not less(time_h, time_l, h, l) then return false end
  local at, cost = find_entry(log, h, l)
  if not at or cost == 0 then return false end
  log.total = log.total - cost
  if at == log.count - 1 then
    redis.call('LSET', log.list, -1, pack_entry(l, h, 1))
    log.given_back = 1
  else
    redis.call('LREM', log.list, 1, pack_entry(l, h, cost))
    log.count = log.count - 1
  end
  save_header(k, log)
  logs[k] = nil
  return true
end

-- Operations, by number.

local charge = { [0] = charge_token_bucket, charge_fixed_window, nil, charge_sliding_counter }
local refund = { [0] = refund_token_bucket, refund_fixed_window, nil, refund_sliding_counter }
local CHARGE, PEEK, REFUND, RELEASE, RESET = 0, 1, 2, 3, 4
local text = ARGV[3]
local at = 1
local out = { pack_s('<I4i4', now_l, now_h) }

local function is_log(q) return q.algorithm == 2 or q.algorithm == 4 end

-- One charge of an application; true if it passed.
local function run(op, undo)
  local k, qi, cost, l, h, frac
  k, qi, cost, l, h, frac, at = unpack_s('<HHdI4i4I4', text, at)
  local q = quotas[qi]
  local passed, answer = true, nil
  if op == RESET then
    redis.call('UNLINK', KEYS[k], KEYS[k] .. 'e')
    value[k], lifetime[k], logs[k] = false, nil, nil
    return true
  elseif is_log(q) then
    if op == CHARGE then
      passed, answer = charge_log(k, q, cost)
    elseif op == REFUND then
      answer = refund_log(k, q, cost)
    else
      local released = op == RELEASE and q.algorithm == 4 and release(k, q, l, h)
      answer = peek_log(k, q, op == PEEK and cost or 0)
      if released then answer = char(RELEASED) .. string.sub(answer, 2) end
    end
  else
    local v = value[k]
    answer = v or ''
    local changed, nanoseconds
    if op == CHARGE then
      passed, changed, nanoseconds = charge[q.algorithm](v, q, cost, l, h, frac)
    elseif op == REFUND then
      changed = refund[q.algorithm](v, q, cost, l, h, frac)
    end
    if changed then
      if undo then undo[#undo + 1] = { k, v, lifetime[k] } end
      value[k] = changed
      if nanoseconds or not lifetime[k] then lifetime[k] = nanoseconds or -1 end
    end
  end
  out[#out + 1] = answer
  return passed
end

for _ = 1, application_count do
  local op, count
  op, count, at = unpack_s('<BH', text, at)
  local undo = op == CHARGE and count > 1 and {} or nil
  local all = true
  for _ = 1, count do
    if not run(op, undo) then all = false end
  end
  if all then
    for k, log in pairs(logs) do save_log(k, log) end
  elseif undo then
    for i = #undo, 1, -1 do
      local k = undo[i][1]
      value[k], lifetime[k] = undo[i][2], undo[i][3]
    end
  end
  if next(logs) then logs = {} end
end

for k, nanoseconds in pairs(lifetime) do
  if injected == 1 then
    redis.call('SET', KEYS[k], value[k])
  elseif nanoseconds < 0 then
    redis.call('SET', KEYS[k], value[k], 'KEEPTTL')
  else
    redis.call('SET', KEYS[k], value[k], 'PX', milliseconds(nanoseconds))
  end
end
return out
