-- Frees one place in a window that this transaction has locked.
CREATE FUNCTION weir_slot_give_back(p_id int, p_size bigint, p_window bigint, p_max bigint,
                                    p_class text)
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  UPDATE rate_limit_window_counter c
  SET slot_count = c.slot_count - 1,
      status = CASE WHEN c.slot_count + c.carried - 1 >= p_max THEN 'CLOSED' ELSE 'OPEN' END
  WHERE c.config_id = p_id AND c.window_ms = p_size AND c.window_start = p_window;
  UPDATE rate_limit_tenant_counter t SET slot_count = t.slot_count - 1
  WHERE t.config_id = p_id AND t.window_ms = p_size AND t.tenant = p_class
    AND t.window_start = p_window AND t.slot_count > 0;
END $f$;
