do
  local window, window_frac, refill, time, time_frac = a, b, c, d, e
  local debt, frac, kept_h = 0, 0, nil
  if v then
    if #v ~= 12 then return '' end
    local l
    l, kept_h, frac = unpack_s('<I4i4I4', v)
    local ahead = kept_h - ref_h
    if ahead >= 524288 or ahead <= -524288 then return '' end
    debt = ahead * 4294967296 + l - ref_l - now
    if debt < 0 then
      debt, frac = 0, 0
    elseif frac >= refill then
      debt, frac = debt + 1, 0
    end
  end
  debt, frac = debt + time, frac + time_frac
  if frac >= refill then debt, frac = debt + 1, frac - refill end
  if debt < window or (debt == window and frac <= window_frac) then
    local finish = ref_l + now + debt
    local l = finish % 4294967296
    end_h = ref_h + (finish - l) / 4294967296
    if v and end_h - end_h % 4 == kept_h - kept_h % 4 then place = '0' end
    new = pack_s('<I4i4I4', l, end_h, frac)
  end
end
