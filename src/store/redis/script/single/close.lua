
if new then
  if place then
    call('SETRANGE', key, place, new)
  elseif keeps then
    call('SET', key, new, 'KEEPTTL')
  elseif injected then
    call('SET', key, new)
  elseif end_h - end_h % 4 == step_h then
    call('SET', key, new, 'PXAT', ARGV[2])
  else -- at the end of the step of 2^34 ns, as in quotas.lua
    call('SET', key, new, 'PXAT', string.format('%.0f', (end_h - end_h % 4 + 4) * 4294.967296 + 1))
  end
end
if v then return pack_s('<dc0', now, v) end
return pack_s('<d', now)
