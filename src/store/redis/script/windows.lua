-- Token buckets, fixed and anchored windows. A charge: (state, term) -> (granted, new state, high
-- words of its end and of the old one's); a cost of 0 is granted and changes nothing. A refund:
-- (state, term) -> (new state, high words likewise).

local function debt_of(v, q)
  local l, h, frac = unpack_s('<I4i4I4', v)
  if less(h, l, now_h, now_l) then return 0, 0, 0 end
  h, l = sub(h, l, now_h, now_l)
  if frac < q.refill then return h, l, frac end
  h, l = add(h, l, 0, 1)
  return h, l, 0
end

-- A debt plus one charge.
local function with_charge(h, l, frac, t)
  h, l = add(h, l, t.h, t.l)
  frac = frac + t.frac
  if frac < t.quota.refill then return h, l, frac end
  h, l = add(h, l, 0, 1)
  return h, l, frac - t.quota.refill
end

local function charge_far_token_bucket(v, t)
  local q, h, l, frac = t.quota, 0, 0, 0
  if v then h, l, frac = debt_of(v, q) end
  h, l, frac = with_charge(h, l, frac, t)
  if less(q.wh, q.wl, h, l) or (q.wh == h and q.wl == l and q.frac < frac) then return false end
  h, l = add(now_h, now_l, h, l)
  return true, pack_s('<I4i4I4', l, h, frac), h
end

-- Uses plain numbers where all of them are less than 2^53: if the window is below 2^51 and the
-- state less than 2^51 from the reference.
local function charge_token_bucket(v, t)
  local q = t.quota
  if t.cost <= 0 then return true end
  if t.cost > q.limit then return false end
  if not q.window then return charge_far_token_bucket(v, t) end
  local debt, frac, kept_h = 0, 0, nil
  if v then
    local l
    l, kept_h, frac = unpack_s('<I4i4I4', v)
    local ahead = kept_h - ref_h
    if ahead >= NEAR or ahead <= -NEAR then return charge_far_token_bucket(v, t) end
    debt = ahead * B + l - ref_l - since_ref
    if debt < 0 then
      debt, frac = 0, 0
    elseif frac >= q.refill then
      debt, frac = debt + 1, 0
    end
  end
  debt, frac = debt + t.time, frac + t.frac
  if frac >= q.refill then debt, frac = debt + 1, frac - q.refill end
  if debt > q.window or (debt == q.window and frac > q.frac) then return false end
  local finish = ref_l + since_ref + debt
  local l = finish % B
  local h = ref_h + (finish - l) / B
  return true, pack_s('<I4i4I4', l, h, frac), h, kept_h
end

local function refund_token_bucket(v, t)
  if not v or t.cost <= 0 then return end
  local q = t.quota
  local h, l, frac = debt_of(v, q)
  if h == 0 and l == 0 and frac == 0 then return end
  if less(t.h, t.l, h, l) or (t.h == h and t.l == l and t.frac < frac) then
    h, l = sub(h, l, t.h, t.l)
    frac = frac - t.frac
    if frac < 0 then
      frac = frac + q.refill
      h, l = sub(h, l, 0, 1)
    end
  else
    h, l, frac = 0, 0, 0
  end
  h, l = add(now_h, now_l, h, l)
  return pack_s('<I4i4I4', l, h, frac), h
end

-- The end of the current window, what was granted in it, and the high word of the state's own end.
local function window_of(v, q)
  if not q.end_h then
    locate(q)
    q.start_h, q.start_l = sub(now_h, now_l, q.eh, q.el)
    q.end_h, q.end_l = add(q.start_h, q.start_l, q.wh, q.wl)
  end
  if not v then return q.end_h, q.end_l, 0 end
  local l, h, count_l, count_h = unpack_s('<I4i4I4i4', v)
  if not less(q.start_h, q.start_l, h, l) then return q.end_h, q.end_l, 0, h end
  local count = number(count_h, count_l)
  if less(h, l, q.end_h, q.end_l) then return q.end_h, q.end_l, count, h end
  return h, l, count, h
end

local function pack_window(h, l, count)
  return pack_s('<I4i4I4i4', l, h, count % B, floor(count / B))
end

local function charge_fixed_window(v, t)
  if t.cost <= 0 then return true end
  local h, l, count, kept_h = window_of(v, t.quota)
  if t.cost > t.quota.limit - count then return false end
  return true, pack_window(h, l, count + t.cost), h, kept_h
end

local function refund_fixed_window(v, t)
  if not v or t.cost <= 0 then return end
  local h, l, count, kept_h = window_of(v, t.quota)
  if count == 0 then return end
  return pack_window(h, l, count - math.min(count, t.cost)), h, kept_h
end

-- The same for a window that begins with its first charge.
local function anchored_of(v, q)
  local kept_h
  if v then
    local l, h, count_l, count_h = unpack_s('<I4i4I4i4', v)
    local count = number(count_h, count_l)
    if count > 0 and less(now_h, now_l, h, l) then return h, l, count, h end
    kept_h = h
  end
  local h, l = add(now_h, now_l, q.wh, q.wl)
  return h, l, 0, kept_h
end

local function charge_anchored_window(v, t)
  if t.cost <= 0 then return true end
  local h, l, count, kept_h = anchored_of(v, t.quota)
  if t.cost > t.quota.limit - count then return false end
  return true, pack_window(h, l, count + t.cost), h, kept_h
end

local function refund_anchored_window(v, t)
  if not v or t.cost <= 0 then return end
  local h, l, count, kept_h = anchored_of(v, t.quota)
  if count == 0 then return end
  return pack_window(h, l, count - math.min(count, t.cost)), h, kept_h
end
