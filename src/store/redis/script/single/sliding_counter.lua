do
  -- position: of the reference in its bucket, whose number is `index`.
  local limit, cost, width, position, index, slots = a, b, c, d, e, f
  local at = position + now
  local steps = math.floor(at / width)
  local elapsed = at - steps * width
  if elapsed < 0 then
    steps, elapsed = steps - 1, elapsed + width
  elseif elapsed >= width then
    steps, elapsed = steps + 1, elapsed - width
  end
  local current, newest, ahead, rest = index + steps, nil, 0, ''
  -- What counts in full and in part; the newest bucket's count and how many bytes it takes.
  local full, partial, first, first_size = 0, 0, 0, 0
  if v then
    if #v < 18 or #v > 1024 then return '' end
    local il, ih, wl, wh, kept_slots = unpack_s('<I4i4I4i4H', v)
    if wh * 4294967296 + wl ~= width or kept_slots ~= slots then return '' end
    if ih >= 1048576 or ih <= -1048576 then return '' end
    newest = ih * 4294967296 + il
    if newest > current then
      ahead, current, elapsed = newest - current, newest, 0
      if ahead > slots then return '' end
    end
    local left = slots - math.min(current - newest, slots + 1) -- buckets that count in full
    local bytes, n, sum, scale, last = { string.byte(v, 19, -1) }, 0, 0, 1, 18
    for i = 1, #bytes do
      local byte = bytes[i]
      if byte >= 128 then
        sum, scale = sum + (byte - 128) * scale, scale * 128
        if scale > 34359738368 then return '' end -- of more than six bytes
      else
        sum, scale, n = sum + byte * scale, 1, n + 1
        if n == 1 then first, first_size = sum, i end
        if n <= left then full = full + sum elseif n == left + 1 then partial = sum end
        sum = 0
        if n <= left + 1 then last = 18 + i end
      end
    end
    rest = string.sub(v, 19, last)
  end
  local room = limit - full - cost
  local granted = partial <= room
  if not granted and room >= 0 then
    local asked, most = partial * (width - elapsed), room * width
    if asked < most * (1 - 1e-12) then
      granted = true
    elseif asked <= most * (1 + 1e-12) then
      return '' -- too near for plain numbers
    end
  end
  if granted then
    keeps = newest == current
    local head, count, packed = nil, cost, ''
    if keeps then
      head, count, rest = string.sub(v, 1, 18), first + cost, string.sub(rest, first_size + 1)
    else
      local h, w = math.floor(current / 4294967296), math.floor(width / 4294967296)
      head = pack_s('<I4i4I4i4H', current % 4294967296, h, width % 4294967296, w, slots)
      if rest ~= '' then rest = string.rep('\0', current - newest - 1) .. rest end
    end
    while count >= 128 do
      packed = packed .. string.char(128 + count % 128)
      count = math.floor(count / 128)
    end
    packed = packed .. string.char(count) .. rest
    -- Buckets without a charge at the end are not kept.
    if string.byte(packed, -1) == 0 then packed = string.match(packed, '^(.-)%z*$') end
    new = head .. packed
    local finish = ref_l + now + (slots + 1 + ahead) * width - elapsed
    end_h = ref_h + math.floor(finish / 4294967296)
  end
end
