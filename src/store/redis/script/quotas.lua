-- The quotas of the call, where now is among their windows, and the states of its keys.

local quotas = {}
for i = 1, quota_count do
  local q = {}
  q.algorithm, q.limit, q.wl, q.wh, q.frac, q.refill, q.al, q.ah, q.pl, q.ph, q.slots =
    unpack_s('<BdI4i4I4I4I4i4I4i4H', ARGV[2], (i - 1) * 43 + 1)
  quotas[i] = q
end

-- Where now is among the windows (buckets) of width w that begin at multiples of w: how many after
-- the reference's, and how far into its own. The reference was (ph, pl) into its own.
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

-- States: what stands in Redis, with what this call has changed.

local value = #KEYS > 0 and redis.call('MGET', unpack(KEYS)) or {}
local lifetime = {} -- of changed values: nanoseconds, or -1: as before
