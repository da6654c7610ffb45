-- Logs: a header and a list of entries, oldest first. What a charge changes stays in the log's
-- table until the application is granted.

local logs = {} -- of the current application

local function open_log(k, q)
  local log = logs[k]
  if log then return log end
  log = { list = KEYS[k] .. 'e', drop = 0, push = {}, total = 0, count = 0, given_back = 0 }
  local v = state_of(k)
  if v then
    log.nl, log.nh, log.ml, log.mh, log.total, log.count, log.given_back =
      unpack_s('<I4i4I4i4ddB', v)
    if #v ~= 33 or not (log.count >= 0 and log.count <= MAX_ENTRIES)
      or not (log.total >= 0 and log.total <= MAX_COUNT) then error('damaged') end
    log.kept_h = q.algorithm == 4 and log.nh or add(log.nh, log.nl, log.mh, log.ml)
  end
  log.stored = log.count
  logs[k] = log
  return log
end

local function pack_entry(l, h, cost)
  if cost == 1 then return pack_s('<I4i4', l, h) end
  return pack_s('<I4i4d', l, h, cost)
end

-- Time and cost of entry i of the entries not dropped, from 0.
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
      chunk = call('LRANGE', log.list, at, at + (chunk and 255 or 7))
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

local function header(log)
  return pack_s('<I4i4I4i4ddB', log.nl, log.nh, log.ml, log.mh, log.total, log.count,
    log.given_back)
end

-- Writes what charges have changed. The list outlives its header, which says which entries count.
local function save_log(k, log)
  if not log.end_h then return end
  local anew = log.drop >= log.stored
  value[k] = header(log)
  extend(k, log.end_h, not anew and log.kept_h or nil)
  if anew then
    call('DEL', log.list)
  else
    if log.replaced then call('LSET', log.list, -1, log.replaced) end
    if log.drop > 0 then call('LTRIM', log.list, log.drop, -1) end
  end
  for i = 1, #log.push do call('RPUSH', log.list, log.push[i]) end
  if expiry[k] and injected == 0 then
    call('PEXPIREAT', log.list, milliseconds(expiry[k] + 1))
  end
end

local GRANTED, REFUSED, FULL, RELEASED = 1, 0, 2, 3

local function found(kind, used, h, l, then_h, then_l)
  return pack_s('<BdI4i4I4i4', kind, used, l or 0, h or 0, then_l or 0, then_h or 0)
end

-- Describes a log: used, the time of its newest charge, and when `cost` fits.
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

-- The time of the key, which never goes backwards, and what has expired by then.
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
  local log = open_log(k, q)
  local _, _, expired_cost, expired_count = look(log, q)
  return describe(log, q, log.total - expired_cost, expired_cost, cost,
    is_full(log, q, expired_count))
end

local function charge_log(k, q, cost)
  local log = open_log(k, q)
  local h, l, expired_cost, expired_count = look(log, q)
  local used = log.total - expired_cost
  local full = is_full(log, q, expired_count)
  if cost <= 0 then return true, describe(log, q, used, expired_cost, cost, full) end
  if cost > q.limit - used or full then
    return false, describe(log, q, used, expired_cost, cost, full)
  end
  if q.algorithm == 2 then
    append(log, expired_cost, expired_count, h, l, cost, q.wh, q.wl)
    log.end_h = add(h, l, q.wh, q.wl)
  else
    local time_h, time_l = h, l
    h, l = add(now_h, now_l, q.wh, q.wl)
    if log.count > 0 then
      local next_h, next_l = add(log.nh, log.nl, 0, 1)
      if less(h, l, next_h, next_l) then h, l = next_h, next_l end
    end
    if h == 0 and l == 0 then l = 1 end
    append(log, expired_cost, expired_count, h, l, cost, time_h, time_l)
    log.end_h = h
  end
  return true, found(GRANTED, used, h, l)
end

-- Sets the expiry again of a list that lost it by being empty for a moment.
local function keep_list(k, log)
  if injected == 1 then return end
  if expiry[k] then return call('PEXPIREAT', log.list, milliseconds(expiry[k] + 1)) end
  local left = call('PTTL', KEYS[k])
  if left >= 0 then call('PEXPIRE', log.list, left + 17180) end
end

-- Takes `cost` off the newest entries. Keeps the time of the newest, as an entry without a cost.
local function remove_newest(k, log, cost)
  log.total = log.total - cost
  local last_h, last_l
  while log.count > 0 do
    local h, l, c = entry(log, log.count - 1)
    if not h then break end
    last_h, last_l = h, l
    if cost == 0 and c > 0 then break end
    if c > cost then
      call('LSET', log.list, -1, pack_entry(l, h, c - cost))
      break
    end
    call('RPOP', log.list)
    cost, log.count, log.given_back, last_h = cost - c, log.count - 1, 0, nil
  end
  if not last_h or last_h ~= log.nh or last_l ~= log.nl then
    call('RPUSH', log.list, pack_entry(log.nl, log.nh, 1))
    log.count, log.given_back = log.count + 1, 1
  end
  keep_list(k, log)
  value[k] = header(log)
  logs[k] = nil
end

local function refund_log(k, q, cost)
  if q.algorithm == 4 then return peek_log(k, q, 0) end -- permits are released by their names
  local log = open_log(k, q)
  local _, _, expired_cost = look(log, q)
  local back = math.min(cost, log.total - expired_cost)
  if back > 0 then remove_newest(k, log, back) end
  return peek_log(k, q, 0)
end

-- Index and cost of the entry with exactly that time.
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
  local log = open_log(k, q)
  local time_h, time_l = look(log, q)
  if log.count == 0 or not less(time_h, time_l, h, l) then return false end
  local at, cost = find_entry(log, h, l)
  if not at or cost == 0 then return false end
  log.total = log.total - cost
  if at == log.count - 1 then
    call('LSET', log.list, -1, pack_entry(l, h, 1))
    log.given_back = 1
  else
    call('LREM', log.list, 1, pack_entry(l, h, cost))
    log.count = log.count - 1
  end
  value[k] = header(log)
  logs[k] = nil
  return true
end
