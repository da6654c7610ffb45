-- Settling a charge at its actual cost, as in src/algorithm/settle.cc: (state, term, the charge's
-- stamp) -> (new state, high words of its end and of the old one's).

-- (ah, al) is the end of the window that was charged.
local function return_anchored_window(v, t, ah, al)
  local h, l, count = anchored_of(v, t.quota)
  if count == 0 or h ~= ah or l ~= al then return end
  return pack_window(h, l, count - math.min(count, t.cost)), h, h
end

-- By algorithm number, without the algorithms that keep logs.
local settle_less = { [0] = settle_bucket, [1] = return_fixed_window,
  [3] = return_sliding_counter, [5] = return_anchored_window }

local function settle_state(v, t, stamp)
  if t.cost > 0 then return t.overdraw(v, t) end
  if t.cost == 0 or not v then return end
  t.less = t.less or { quota = t.quota, cost = -t.cost, h = t.h, l = t.l, frac = t.frac }
  return settle_less[t.quota.algorithm](v, t.less, stamp.h, stamp.l)
end

-- Returns the log's state afterwards.
local function settle_log(k, q, cost, stamp)
  if q.algorithm == 4 then
    release(k, q, stamp.l, stamp.h)
  elseif cost < 0 then
    return_log(k, q, -cost, stamp.h, stamp.l)
  end
  return overdraw_log(k, q, math.max(cost, 0))
end
