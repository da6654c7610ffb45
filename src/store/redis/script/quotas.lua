-- The call's quotas, the position of now in their windows, and the states of the call's keys.

local quotas = {}
for i = 1, quota_count do
  local q = {}
  q.algorithm, q.limit, q.wl, q.wh, q.frac, q.refill, q.al, q.ah, q.pl, q.ph, q.slots =
    unpack_s('<BdI4i4I4I4I4i4I4i4H', ARGV[2], (i - 1) * 43 + 1)
  q.window = q.wh < NEAR and number(q.wh, q.wl) or nil -- where plain numbers are exact
  quotas[i] = q
end

-- The position of now among the windows (buckets) that begin at multiples of their width w: how
-- many after the reference's, and how far into its own. The reference was (ph, pl) into its own.
local function locate(q)
  if q.steps then return end
  if q.wh < 1048576 then
    local w, x = number(q.wh, q.wl), number(q.ph, q.pl) + since_ref
    local steps = floor(x / w)
    local elapsed = x - steps * w
    if elapsed < 0 then steps, elapsed = steps - 1, elapsed + w end
    if elapsed >= w then steps, elapsed = steps + 1, elapsed - w end
    q.steps, q.eh, q.el = steps, pair(elapsed)
    return
  end
  q.eh, q.el = add(q.ph, q.pl, pair(since_ref))
  q.steps = 0
  if q.eh < 0 then
    q.steps, q.eh, q.el = -1, add(q.eh, q.el, q.wh, q.wl)
  elseif not less(q.eh, q.el, q.wh, q.wl) then
    q.steps, q.eh, q.el = 1, sub(q.eh, q.el, q.wh, q.wl)
  end
end

-- States: as stored in Redis, and as changed by this call. Setting a key's expiry is expensive, so
-- expiries are in steps of 2^34 ns (17 s): a key expires at the end of the step in which its state
-- stops counting, and keeps its expiry as long as that step is the same.

local stored = #KEYS > 0 and call('MGET', unpack(KEYS)) or {}
local value = {} -- changed
local expiry = {} -- changed: steps

local function state_of(k) return value[k] or stored[k] end

-- The state of a key now ends at a time whose high word is h; before, at kept_h, if it had one.
local function extend(k, h, kept_h)
  local step = floor(h / 4)
  if not kept_h or step ~= floor(kept_h / 4) then expiry[k] = step end
end

local texts = {}
local function milliseconds(step)
  local text = texts[step]
  if not text then
    text = string.format('%.0f', (step + 1) * (4 * B / 1e6) + 1)
    texts[step] = text
  end
  return text
end
