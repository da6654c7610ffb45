-- What token buckets remember for their open reservations, after their own 12 bytes, as in
-- src/algorithm/low_marks.cc: until when reservations are open (uh, ul), the floor (fh, fl), and
-- marks with a stamp (sh, sl), the lowest debt since then (h, l) and how much is open (oh, ol). The
-- steps are those of the bucket, (state, term) -> (new state, high words of its end and of the old
-- one's), plus the marks.

local MOST_MARKS = 16
local NOTHING_YET_H, NOTHING_YET_L = 2147483647, 4294967295

local function newest(m)
  local last = m[#m]
  if last then return last.sh, last.sl end
  return m.fh, m.fl
end

local function read_marks(v)
  if not v or #v <= 12 then return { uh = -2147483648, ul = 0, fh = -2147483648, fl = 0 } end
  local m = {}
  m.ul, m.uh, m.fl, m.fh = unpack_s('<I4i4I4i4', v, 13)
  for i = 29, #v, 24 do
    local mark = {}
    mark.sl, mark.sh, mark.l, mark.h, mark.ol, mark.oh = unpack_s('<I4i4I4i4I4i4', v, i)
    m[#m + 1] = mark
  end
  if less(now_h, now_l, m.uh, m.ul) then return m end
  local h, l = newest(m)
  return { uh = m.uh, ul = m.ul, fh = h, fl = l }
end

local function write_marks(bucket, m)
  if not less(now_h, now_l, m.uh, m.ul) then return bucket end
  local parts = { bucket, pack_s('<I4i4I4i4', m.ul, m.uh, m.fl, m.fh) }
  for i = 1, #m do
    local mark = m[i]
    parts[i + 2] = pack_s('<I4i4I4i4I4i4', mark.sl, mark.sh, mark.l, mark.h, mark.ol, mark.oh)
  end
  return table.concat(parts)
end

-- The sum of two times that are not negative.
local function bounded_sum(ah, al, bh, bl)
  local h, l = add(ah, al, bh, bl)
  if h > NOTHING_YET_H then return NOTHING_YET_H, NOTHING_YET_L end
  return h, l
end

local function push_mark(m, sh, sl, h, l, oh, ol)
  while #m > 0 and not less(m[#m].h, m[#m].l, h, l) do
    oh, ol = bounded_sum(oh, ol, m[#m].oh, m[#m].ol)
    m[#m] = nil
  end
  if h > 0 or l > 0 then
    m[#m + 1] = { sh = sh, sl = sl, h = h, l = l, oh = oh, ol = ol }
  else
    m.fh, m.fl = sh, sl
  end
end

local function lower_marks(m, h, l)
  local last = m[#m]
  if last and less(h, l, last.h, last.l) then push_mark(m, last.sh, last.sl, h, l, 0, 0) end
end

-- Removes the marks that are no bound: the charges up to them can return less than their low.
local function leave_out_marks(m)
  local count, kept, most_h, most_l, left_h, left_l = #m, 0, 0, 0, 0, 0
  for i = 1, count do
    local mark = m[i]
    m[i] = nil
    mark.oh, mark.ol = bounded_sum(mark.oh, mark.ol, left_h, left_l)
    local h, l = bounded_sum(most_h, most_l, mark.oh, mark.ol)
    local bound = less(mark.h, mark.l, h, l)
    if bound or i == count then
      left_h, left_l = 0, 0
      if bound then h, l = mark.h, mark.l end
      kept, most_h, most_l = kept + 1, h, l
      m[kept] = mark
    else
      left_h, left_l = mark.oh, mark.ol
    end
  end
end

-- Merges the two neighbours whose lows have the smallest ratio: the later one takes over the low of
-- the earlier one.
local function merge_marks(m)
  local at, least = nil, nil
  for i = 2, #m do
    local quotient = number(m[i].h, m[i].l) / number(m[i - 1].h, m[i - 1].l)
    if not at or quotient < least then at, least = i, quotient end
  end
  m[at].h, m[at].l = m[at - 1].h, m[at - 1].l
  m[at].oh, m[at].ol = bounded_sum(m[at].oh, m[at].ol, m[at - 1].oh, m[at - 1].ol)
  table.remove(m, at - 1)
end

-- Adds a reservation that is open for the window of `lasts`.
local function add_mark(m, t, lasts)
  local h, l = add(now_h, now_l, lasts.wh, lasts.wl)
  if less(m.uh, m.ul, h, l) then m.uh, m.ul = h, l end
  if #m == 0 then
    h, l = sub(now_h, now_l, 0, 1)
    if less(m.fh, m.fl, h, l) then m.fh, m.fl = h, l end
  end
  h, l = newest(m)
  h, l = add(h, l, 0, 1)
  if less(h, l, now_h, now_l) then h, l = now_h, now_l end
  local oh, ol = add(t.h, t.l, 0, t.frac > 0 and 1 or 0)
  push_mark(m, h, l, NOTHING_YET_H, NOTHING_YET_L, oh, ol)
  leave_out_marks(m)
  if #m > MOST_MARKS then merge_marks(m) end
end

local function with_low(v, changed, h, l)
  local m = read_marks(v)
  lower_marks(m, h, l)
  return write_marks(changed, m)
end

-- `lasts`: for a reservation, a quota whose window is as long as the reservation lasts.
local function charge_bucket(v, t, lasts)
  local passed, changed, h, kept_h = charge_token_bucket(v, t)
  if changed and (lasts or (v and #v > 12)) then
    local m = read_marks(v)
    if v then lower_marks(m, debt_of(v, t.quota)) end
    if lasts then add_mark(m, t, lasts) end
    changed = write_marks(changed, m)
  end
  return passed, changed, h, kept_h
end

local function refund_bucket(v, t)
  local changed, h, kept_h = refund_token_bucket(v, t)
  if changed and #v > 12 then changed = with_low(v, changed, debt_of(changed, t.quota)) end
  return changed, h, kept_h
end

local function return_bucket(v, t, ah, al)
  local changed, h, kept_h = return_token_bucket(v, t, ah, al)
  if changed and #v > 12 then changed = with_low(v, changed, debt_of(changed, t.quota)) end
  return changed, h, kept_h
end

-- What was charged beyond the maximum debt cannot be returned.
local function overdraw_bucket(v, t)
  local changed, h, kept_h = overdraw_token_bucket(v, t)
  if t.cost <= 0 or not v or #v <= 12 then return changed, h, kept_h end
  changed = changed or string.sub(v, 1, 12)
  local low_h, low_l = debt_of(changed, t.quota)
  if less(low_h, low_l, MOST_H, MOST_L) then
    low_h, low_l = debt_of(v, t.quota)
  else
    low_h, low_l = 0, 0
  end
  return with_low(v, changed, low_h, low_l), h, kept_h
end

-- The first mark that covers a charge with this stamp; nil if none does.
local function find_mark(m, sh, sl)
  if not less(m.fh, m.fl, sh, sl) then return nil end
  for i = 1, #m do
    if not less(m[i].sh, m[i].sl, sh, sl) then return i end
  end
  return nil
end

local function free_marks(m, from, h, l, frac)
  local up_h, up_l = add(h, l, 0, frac > 0 and 1 or 0)
  local rest = {}
  for i = from, #m do
    rest[#rest + 1], m[i] = m[i], nil
  end
  for i = 1, #rest do
    local mark = rest[i]
    local oh, ol = mark.oh, mark.ol
    if i == 1 then
      oh, ol = sub(oh, ol, h, l)
      if oh < 0 then oh, ol = 0, 0 end
    end
    local low_h, low_l = sub(mark.h, mark.l, up_h, up_l)
    push_mark(m, mark.sh, mark.sl, low_h, low_l, oh, ol)
  end
end

local function settle_bucket(v, t, sh, sl)
  local m = read_marks(v)
  local i = find_mark(m, sh, sl)
  if not i then return end
  local h, l, frac = t.h, t.l, t.frac
  if less(m[i].h, m[i].l, h, l) or (m[i].h == h and m[i].l == l and frac > 0) then
    h, l, frac = m[i].h, m[i].l, 0
  end
  local less_by = { quota = t.quota, cost = 1, h = h, l = l, frac = frac }
  local changed, end_h = refund_token_bucket(v, less_by)
  if not changed then return end
  free_marks(m, i, h, l, frac)
  lower_marks(m, debt_of(changed, t.quota))
  return write_marks(changed, m), end_h
end
