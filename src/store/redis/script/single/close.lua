
if new then
  if not keeps then
    if injected then
      call('SET', key, new)
    else -- at the end of the step of 2^34 ns, as in quotas.lua
      call('SET', key, new, 'PXAT', string.format('%.0f', (end_h - end_h % 4 + 4) * 4294.967296 + 1))
    end
  elseif #new == #v then
    call('SETRANGE', key, '0', new)
  else
    call('SET', key, new, 'KEEPTTL')
  end
end
if v then return pack_s('<d', now) .. v end
return pack_s('<d', now)
