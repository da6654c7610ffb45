-- Returning permits that were taken in advance, as in src/algorithm/lease.cc: (state, term, the
-- time of their charge) -> (new state, high words of its end and of the old one's).

local function return_token_bucket(v, t, ah, al)
  if less(now_h, now_l, ah, al) then return end
  local h, l = sub(now_h, now_l, ah, al)
  if not less(h, l, t.h, t.l) and not (h == t.h and l == t.l and t.frac > 0) then return end
  h, l = sub(t.h, t.l, h, l)
  return refund_token_bucket(v, { quota = t.quota, cost = t.cost, h = h, l = l, frac = t.frac })
end

-- Windows of a quota end at multiples of its own length.
local function return_fixed_window(v, t, ah, al)
  local q = t.quota
  local l, h, count_l, count_h = unpack_s('<I4i4I4i4', v)
  local end_h, end_l = divide(h, l, q.wh, q.wl)
  end_h, end_l = multiply(end_h, end_l, q.wh, q.wl)
  if end_h ~= h or end_l ~= l then return end
  local start_h, start_l = sub(h, l, q.wh, q.wl)
  if not less(ah, al, h, l) or less(ah, al, start_h, start_l) then return end
  if not less(now_h, now_l, h, l) then return end
  local count = number(count_h, count_l)
  return pack_window(h, l, count - math.min(count, t.cost)), h, h
end

local function return_sliding_counter(v, t, ah, al)
  local il, ih, wl, wh = unpack_s('<I4i4I4i4', v)
  if wl ~= t.quota.wl or wh ~= t.quota.wh then return end
  local counts, n = read_counts(v)
  local age = number(sub(ih, il, divide(ah, al, wh, wl)))
  if age < 0 or age >= n then return end
  counts[age + 1] = counts[age + 1] - math.min(counts[age + 1], t.cost)
  return write_counts(string.sub(v, 1, 18), counts, n)
end

local function return_log(k, q, cost, ah, al)
  local log = open_log(k, q)
  local at, had = nil, 0
  if log.count > 0 then at, had = find_entry(log, ah, al) end
  if at and had > 0 then
    log.total = log.total - math.min(had, cost)
    if had > cost then
      call('LSET', log.list, at, pack_entry(al, ah, had - cost))
    elseif at == log.count - 1 then
      call('LSET', log.list, -1, pack_entry(al, ah, 1))
      log.given_back = 1
    else
      call('LREM', log.list, 1, pack_entry(al, ah, had))
      log.count = log.count - 1
    end
    value[k] = header(log)
  end
  logs[k] = nil
  return peek_log(k, q, 0)
end
