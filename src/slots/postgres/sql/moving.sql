-- Freeing a place locks the rows of windows first, then the event: the same order as in assigning.

DROP FUNCTION IF EXISTS weir_slots_assign(text, text[], bigint[], text[], bigint[]);
DROP FUNCTION IF EXISTS weir_slots_cancel(text);
DROP FUNCTION IF EXISTS weir_slots_reschedule(text, text, bigint, bigint);

-- Frees the place of an event whose window this transaction has locked; c is the active version of
-- its config, if there is one.
CREATE FUNCTION weir_slot_free(s rate_limit_event_slot, c rate_limit_config)
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  PERFORM weir_slot_give_back(
    s.config_id, s.window_ms, s.window_start,
    CASE WHEN c.window_ms = s.window_ms THEN c.max_per_window ELSE 9223372036854775807 END,
    CASE WHEN s.tenant = ANY (c.tenants) THEN s.tenant ELSE '*' END);
  IF c.window_ms <> s.window_ms THEN
    UPDATE rate_limit_window_counter w
    SET carried = w.carried - 1,
        status = CASE WHEN w.slot_count + w.carried - 1 >= c.max_per_window THEN 'CLOSED'
                      ELSE 'OPEN' END
    WHERE w.config_id = s.config_id AND w.window_ms = c.window_ms AND w.carried > 0
      AND w.window_start = s.scheduled_time - s.scheduled_time % c.window_ms;
  END IF;
END $f$;

CREATE FUNCTION weir_slot_refuse(p_state int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  RAISE EXCEPTION 'the event is %', (ARRAY['scheduled', 'claimed', 'done', 'failed', 'cancelled',
                                           'external'])[p_state + 1]
    USING ERRCODE = 'WS01' || p_state;
END $f$;
