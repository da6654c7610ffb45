do
  -- position: of the reference in its window; negative if windows begin with a charge.
  local limit, cost, width, position = a, b, c, d
  local finish, count, kept_h = now + width, 0, nil
  if position >= 0 then
    local at = position + now
    local elapsed = at % width -- off by a width where at / width is rounded
    if elapsed < 0 then
      elapsed = elapsed + width
    elseif elapsed >= width then
      elapsed = elapsed - width
    end
    finish = finish - elapsed
  end
  if v then
    if #v ~= 16 then return '' end
    local l, count_l, count_h
    l, kept_h, count_l, count_h = unpack_s('<I4i4I4i4', v)
    local ahead = kept_h - ref_h
    if ahead >= 524288 or ahead <= -524288 then return '' end
    local stored, had = ahead * 4294967296 + l - ref_l, count_h * 4294967296 + count_l
    if position < 0 then
      if had > 0 and now < stored then finish, count = stored, had end
    elseif stored > finish - width then
      count = had
      if stored > finish then finish = stored end
    end
  end
  if cost <= limit - count then
    count, finish = count + cost, finish + ref_l
    local l, count_l = finish % 4294967296, count % 4294967296
    end_h = ref_h + (finish - l) / 4294967296
    if v and end_h - end_h % 4 == kept_h - kept_h % 4 then place = '0' end
    new = pack_s('<I4i4I4i4', l, end_h, count_l, (count - count_l) / 4294967296)
  end
end
