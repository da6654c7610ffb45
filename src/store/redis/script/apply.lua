-- Runs the applications one after the other, then writes what has changed.

-- By algorithm number, without the algorithms that keep logs.
local charge = { [0] = charge_bucket, [1] = charge_fixed_window, [3] = charge_sliding_counter,
  [5] = charge_anchored_window }
local refund = { [0] = refund_bucket, [1] = refund_fixed_window, [3] = refund_sliding_counter,
  [5] = refund_anchored_window }
local overdraw = { [0] = overdraw_bucket, [1] = overdraw_fixed_window,
  [3] = overdraw_sliding_counter, [5] = overdraw_anchored_window }
local give_back = { [0] = return_bucket, [1] = return_fixed_window,
  [3] = return_sliding_counter, [5] = return_anchored_window }
local CHARGE, PEEK, REFUND, RELEASE, RESET, LEASE, RETURN, OVERDRAW, SETTLE, RESERVE = 0, 1, 2, 3, 4,
  5, 6, 7, 8, 9
local out = { pack_s('<I4i4', now_l, now_h) }
local answers = 1

-- A key may hold data that this script did not store. Only the applications of that key report it:
-- an error would abort the call's other applications halfway.
local DAMAGED = '!'
local sizes = { [0] = 12, [1] = 16, [5] = 16 } -- of the states of a fixed size

local function is_whole(v, t)
  if #v == t.size then return true end
  if t.quota.algorithm == 0 then return #v >= 28 and #v <= 412 and (#v - 28) % 24 == 0 end -- with marks
  return not t.size and counts_are_whole(v)
end

-- Like pcall, for code that fails only on a damaged key. An error of the server (OOM, READONLY, …)
-- fails the whole call.
local function attempt(f, ...)
  local fine, passed, answer = pcall(f, ...)
  if fine then return true, passed, answer end
  local text = type(passed) == 'table' and passed.err or tostring(passed)
  local word = string.match(text, '^%-?(%u+) ')
  if word and word ~= 'WRONGTYPE' and word ~= 'ERR' then error({ err = text }) end
  return false
end

-- What a charge takes from a key. (h, l) and frac: the time in which a token bucket refills these
-- permits, or the lease to release.
local terms = {}
for i = 1, term_count do
  local t, quota = {}, nil
  quota, t.cost, t.l, t.h, t.frac = unpack_s('<HdI4i4I4', ARGV[3], (i - 1) * 22 + 1)
  t.quota, t.time = quotas[quota], number(t.h, t.l)
  t.size = sizes[t.quota.algorithm]
  t.charge, t.refund = charge[t.quota.algorithm], refund[t.quota.algorithm]
  t.overdraw = overdraw[t.quota.algorithm]
  terms[i] = t
end

-- One charge on a state that is a single string; true if it passed. `charged`: when the permits to
-- return or to settle were charged, or for a reservation the quota whose window is its duration.
local function run(op, k, t, undo, charged)
  local v = value[k] or stored[k]
  answers = answers + 1
  if v and not is_whole(v, t) then
    out[answers] = DAMAGED
    return false
  end
  out[answers] = v or ''
  local passed, changed, h, kept_h = true, nil, nil, nil
  if op == CHARGE then
    passed, changed, h, kept_h = t.charge(v, t, charged)
  elseif op == REFUND then
    changed, h, kept_h = t.refund(v, t)
  elseif op == OVERDRAW then
    changed, h, kept_h = t.overdraw(v, t)
  elseif op == SETTLE then
    changed, h, kept_h = settle_state(v, t, charged)
  elseif op == RETURN and v and t.cost > 0 and give_back[t.quota.algorithm] then
    changed, h, kept_h = give_back[t.quota.algorithm](v, t, charged.h, charged.l)
  end
  if changed then
    if undo then undo[#undo + 1] = { k, value[k], expiry[k] } end
    value[k] = changed
    if h ~= kept_h then extend(k, h, kept_h) end
  end
  return passed
end

local function step_log(op, k, t, charged)
  local q, passed, answer = t.quota, true, nil
  if op == CHARGE then
    passed, answer = charge_log(k, q, t.cost)
  elseif op == REFUND then
    answer = refund_log(k, q, t.cost)
  elseif op == OVERDRAW then
    answer = overdraw_log(k, q, t.cost)
  elseif op == SETTLE then
    answer = settle_log(k, q, t.cost, charged)
  elseif op == RETURN and q.algorithm == 2 and t.cost > 0 then
    answer = return_log(k, q, t.cost, charged.h, charged.l)
  else
    local released = op == RELEASE and q.algorithm == 4 and release(k, q, t.l, t.h)
    answer = peek_log(k, q, op == PEEK and t.cost or 0)
    if released then answer = char(RELEASED) .. string.sub(answer, 2) end
  end
  return passed, answer
end

local function run_log(op, k, t, charged)
  local whole, passed, answer = attempt(step_log, op, k, t, charged)
  if not whole then logs[k] = nil end
  answers = answers + 1
  out[answers] = whole and answer or DAMAGED
  return whole and passed
end

-- Returns false if a log could not be written.
local function save_logs()
  for k, log in pairs(logs) do
    if not attempt(save_log, k, log) then
      value[k], expiry[k] = nil, nil
      return false
    end
  end
  return true
end

local function reset(k)
  call('UNLINK', KEYS[k], KEYS[k] .. 'e')
  stored[k], value[k], expiry[k], logs[k] = false, nil, nil, nil
end

-- Steps: op, number of charges, number of applications that share both; then a key and a
-- term for each charge.
local steps = cmsgpack.unpack(ARGV[4])
local at = 1

local function apply(op, count)
  local lasts = nil
  if op == RESERVE then op, lasts = CHARGE, terms[steps[at + 1]].quota end
  local undo = op == CHARGE and count > 1 and {} or nil
  local all, logged, first = true, false, answers + 1
  for _ = 1, count do
    local k, t = steps[at], terms[steps[at + 1]]
    at = at + 2
    if op == RESET then
      reset(k)
    elseif t.charge then
      all = run(op, k, t, undo, lasts) and all
    else
      all, logged = run_log(op, k, t) and all, true
    end
  end
  if all and logged and not save_logs() then
    all = false
    for i = first, answers do out[i] = DAMAGED end
  end
  if not all and undo then
    for i = #undo, 1, -1 do
      local k = undo[i][1]
      value[k], expiry[k] = undo[i][2], undo[i][3]
    end
  end
  if logged then logs = {} end
end

-- Charges the first term that fits. Gives one answer, whichever term that is.
local function lease(count)
  local logged, granted, first = false, false, answers
  for _ = 1, count do
    local k, t = steps[at], terms[steps[at + 1]]
    at = at + 2
    if not granted then
      answers = first
      logged = not t.charge
      if logged then granted = run_log(CHARGE, k, t) else granted = run(CHARGE, k, t) end
    end
  end
  if logged then
    if granted and not save_logs() then out[answers] = DAMAGED end
    logs = {}
  end
end

-- Two terms: what is returned, and when it was charged.
local function return_lease()
  local k, t, charged = steps[at], terms[steps[at + 1]], terms[steps[at + 3]]
  at = at + 4
  if t.charge then
    run(RETURN, k, t, nil, charged)
  else
    run_log(RETURN, k, t, charged)
    logs = {}
  end
end

-- Two terms for each charge: by how much it changes, and its stamp. The first charge is the record
-- that the others depend on.
local function settle(count)
  local released = false
  for i = 1, count do
    local k, t, stamp = steps[at], terms[steps[at + 1]], terms[steps[at + 3]]
    at = at + 4
    if i == 1 then
      run_log(RELEASE, k, { quota = t.quota, cost = 0, h = stamp.h, l = stamp.l })
      released = string.byte(out[answers]) == RELEASED
    elseif t.charge then
      run(released and SETTLE or PEEK, k, t, nil, stamp)
    elseif released then
      run_log(SETTLE, k, t, stamp)
      if not save_logs() then out[answers] = DAMAGED end
    else
      run_log(OVERDRAW, k, { quota = t.quota, cost = 0 })
    end
    logs = {}
  end
end

while steps[at] do
  local op, count, times = steps[at], steps[at + 1], steps[at + 2]
  at = at + 3
  for _ = 1, times do
    if op == LEASE then
      lease(count)
    elseif op == RETURN then
      return_lease()
    elseif op == SETTLE then
      settle(count)
    else
      apply(op, count)
    end
  end
end

for k, v in pairs(value) do
  if expiry[k] then
    if injected == 1 then call('SET', KEYS[k], v)
    else call('SET', KEYS[k], v, 'PXAT', milliseconds(expiry[k])) end
  elseif #v == #stored[k] then
    call('SETRANGE', KEYS[k], '0', v)
  else
    call('SET', KEYS[k], v, 'KEEPTTL')
  end
end
return out
