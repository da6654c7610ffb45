-- The applications, one after the other; in the end, what has changed is written.

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
