-- Token buckets and fixed windows. A charge: (state, quota, cost, argument) -> (granted, new
-- state, its lifetime); one that is only a look is granted and changes nothing.

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
