do
  -- position: of the reference in its bucket, whose number is `index`.
  local limit, cost, width, position, index, slots = a, b, c, d, e, f
  local at = position + now
  local elapsed = at % width -- off by a width where at / width is rounded
  if elapsed < 0 then
    elapsed = elapsed + width
  elseif elapsed >= width then
    elapsed = elapsed - width
  end
  local steps = (at - elapsed) / width
  local current, newest, ahead, last = index + steps, nil, 0, 18
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
    local left = slots - current + newest -- buckets that count in full
    if left < -1 then left = -1 end
    local bytes, n, sum, scale = { string.byte(v, 19, -1) }, 0, 0, 1
    for i = 1, #bytes do
      local byte = bytes[i]
      if byte >= 128 then
        sum, scale = sum + (byte - 128) * scale, scale * 128
        if scale > 34359738368 then return '' end -- more than six bytes
      else
        sum, scale, n = sum + byte * scale, 1, n + 1
        if n == 1 then first, first_size = sum, i end
        if n <= left then full = full + sum elseif n == left + 1 then partial = sum end
        sum = 0
        if n <= left + 1 then last = 18 + i end
      end
    end
  end
  local room = limit - full - cost
  local granted = partial <= room
  if not granted and room >= 0 then
    local asked, most = partial * (width - elapsed), room * width
    if asked < most * (1 - 1e-12) then
      granted = true
    elseif asked <= most * (1 + 1e-12) then
      return '' -- too close for plain numbers
    end
  end
  if granted then
    keeps = newest == current
    local count, packed = keeps and first + cost or cost, ''
    while count >= 128 do
      local low = count % 128
      packed = packed .. string.char(128 + low)
      count = (count - low) / 128
    end
    packed = packed .. string.char(count)
    if keeps and #packed == first_size and last == #v then
      new, place = packed, '18'
    else
      local head
      if keeps then
        head, packed = string.sub(v, 1, 18), packed .. string.sub(v, 19 + first_size, last)
      else
        local l, w = current % 4294967296, width % 4294967296
        head = pack_s('<I4i4I4i4H', l, (current - l) / 4294967296, w, (width - w) / 4294967296, slots)
        if last > 18 then
          packed = packed .. string.rep('\0', current - newest - 1) .. string.sub(v, 19, last)
        end
      end
      -- Buckets without a charge at the end are not kept.
      if string.byte(packed, -1) == 0 then packed = string.match(packed, '^(.-)%z*$') end
      new = head .. packed
    end
    local finish = ref_l + now + (slots + 1 + ahead) * width - elapsed
    end_h = ref_h + (finish - finish % 4294967296) / 4294967296
  end
end
