-- Sliding counters: counts[1] is the newest bucket.

-- A header whose numbers are in range, and counts of at most six bytes each: all that the steps below
-- rely on.
local function counts_are_whole(v)
  if #v < 18 or #v > 6168 then return false end
  local il, ih, wl, wh = unpack_s('<I4i4I4i4', v)
  local width = number(wh, wl)
  local start = number(ih, il) * width
  return width >= 1 and width <= 4e18 and start <= 7e18 and start >= -7e18
    and not string.find(v, '[\128-\255][\128-\255][\128-\255][\128-\255][\128-\255][\128-\255]', 19)
end

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
-- is sorted into new buckets by the last nanosecond of each of its own.
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

-- How many buckets the current one is after the newest; slots + 1 if all have slid out.
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

-- The counters as they stand now: how far the newest bucket is behind the current one, what is in
-- the buckets that count in full and in the one that is sliding out.
local function counter_of(v, q)
  locate(q)
  local c = { counts = {}, n = 0, shift = 0, full = 0, partial = 0, eh = q.eh, el = q.el, ahead = 0 }
  c.h, c.l = add(q.ah, q.al, pair(q.steps))
  if not v then return c end
  local newest_h, newest_l
  c.counts, c.n, newest_h, newest_l = buckets_of(v, q)
  if less(c.h, c.l, newest_h, newest_l) then
    c.ahead = number(sub(newest_h, newest_l, c.h, c.l))
    c.h, c.l, c.eh, c.el = newest_h, newest_l, 0, 0
  end
  c.shift = shift_of(c.h, c.l, newest_h, newest_l, q.slots)
  for i = 1, math.min(c.n, q.slots - c.shift) do c.full = c.full + c.counts[i] end
  if q.slots - c.shift + 1 <= c.n then c.partial = c.counts[q.slots - c.shift + 1] or 0 end
  return c
end

-- The state with `cost` more in the current bucket, and the high words of its end and of v's.
local function add_to_counter(c, v, q, cost)
  local moved, kept = {}, math.min(c.n, q.slots + 1 - c.shift)
  if kept > 0 then
    for i = 1, c.shift do moved[i] = 0 end
    for i = 1, kept do moved[c.shift + i] = c.counts[i] end
  end
  moved[1] = (moved[1] or 0) + cost
  local head = pack_s('<I4i4I4i4H', c.l, c.h, q.wl, q.wh, q.slots)
  local lasts = (q.slots + 1 + c.ahead) * number(q.wh, q.wl) - number(c.eh, c.el)
  local end_h = now_h + floor((now_l + lasts) / B)
  local kept_h = v and string.sub(v, 1, 18) == head and end_h or nil
  return write_counts(head, moved, #moved), end_h, kept_h
end

local function charge_sliding_counter(v, t)
  local q, cost = t.quota, t.cost
  if cost <= 0 then return true end
  local c = counter_of(v, q)
  if not share_fits(c.partial, q, c.eh, c.el, q.limit - c.full - cost) then return false end
  return true, add_to_counter(c, v, q, cost)
end

-- Uses the state's own width, not the quota's.
local function refund_sliding_counter(v, t)
  if not v then return end
  local cost = t.cost
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
