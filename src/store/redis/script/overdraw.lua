-- Charges that count whether they fit or not: (state, term) -> (new state, high words of its end and
-- of the old one's). A cost of 0 changes nothing.

local MAX_LIMIT = 1099511627776
local MOST_H, MOST_L = 734757632, 73596928 -- 100 years: the maximum debt of a token bucket

-- The part of `cost` that is added to `counted` permits.
local function overcharge(counted, cost) return math.max(math.min(cost, MAX_LIMIT - counted), 0) end

local function overdraw_token_bucket(v, t)
  if t.cost <= 0 then return end
  local q, h, l, frac = t.quota, 0, 0, 0
  if v then h, l, frac = debt_of(v, q) end
  if not less(h, l, MOST_H, MOST_L) then return end
  h, l, frac = with_charge(h, l, frac, t)
  if not less(h, l, MOST_H, MOST_L) then h, l, frac = MOST_H, MOST_L, 0 end
  h, l = add(now_h, now_l, h, l)
  return pack_s('<I4i4I4', l, h, frac), h
end

local function overdraw_fixed_window(v, t)
  if t.cost <= 0 then return end
  local h, l, count, kept_h = window_of(v, t.quota)
  return pack_window(h, l, count + overcharge(count, t.cost)), h, kept_h
end

local function overdraw_anchored_window(v, t)
  if t.cost <= 0 then return end
  local h, l, count, kept_h = anchored_of(v, t.quota)
  return pack_window(h, l, count + overcharge(count, t.cost)), h, kept_h
end

local function overdraw_sliding_counter(v, t)
  local c = counter_of(v, t.quota)
  local added = overcharge(c.full + c.partial, t.cost)
  if added > 0 then return add_to_counter(c, v, t.quota, added) end
end

-- Returns the log's state afterwards. A concurrency quota is not charged.
local function overdraw_log(k, q, cost)
  local log = open_log(k, q)
  local h, l, expired_cost, expired_count = look(log, q)
  local used = log.total - expired_cost
  local added = q.algorithm == 2 and overcharge(used, cost) or 0
  if added > 0 then
    append(log, expired_cost, expired_count, h, l, added, q.wh, q.wl)
    log.end_h = add(h, l, q.wh, q.wl)
    used = used + added
  end
  local then_h, then_l
  h, l = nil, nil
  if used > 0 then h, l = newest_charge(log) end
  if used > q.limit then then_h, then_l = time_at_sum(log, log.total - q.limit) end
  return found(REFUSED, used, h, l, then_h, then_l)
end
