-- Freeing a place and cancelling: the rows of windows first, then the event, in the order that
-- assigning takes them.

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

CREATE FUNCTION weir_slots_cancel(p_event text)
RETURNS TABLE(r_config text, r_tenant text, r_requested bigint, r_window bigint,
              r_scheduled bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $f$
DECLARE
  s rate_limit_event_slot%ROWTYPE;
  c rate_limit_config%ROWTYPE;
  name text;
BEGIN
  LOOP
    SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT g.config_name INTO name FROM rate_limit_config g WHERE g.config_id = s.config_id LIMIT 1;
    EXIT WHEN s.state = 4;
    IF s.state NOT IN (0, 3, 5) THEN PERFORM weir_slot_refuse(s.state); END IF;
    PERFORM weir_slots_lock_shared(name);
    PERFORM FROM rate_limit_window_counter w WHERE w.config_id = s.config_id
      AND w.window_ms = s.window_ms AND w.window_start = s.window_start FOR UPDATE;
    UPDATE rate_limit_event_slot e SET state = 4, finished_at = weir_slots_now(0)
    WHERE e.event_id = p_event AND e.state = s.state
      AND e.config_id = s.config_id AND e.window_ms = s.window_ms
      AND e.window_start = s.window_start AND e.scheduled_time = s.scheduled_time;
    IF FOUND THEN
      SELECT * INTO c FROM rate_limit_config g WHERE g.config_name = name AND g.active;
      PERFORM weir_slot_free(s, c);
      INSERT INTO rate_limit_event_change
      VALUES (p_event, weir_slots_now(0), 'cancelled', s.scheduled_time::text);
      EXIT;
    END IF;
  END LOOP;
  RETURN QUERY SELECT name, s.tenant, s.requested_time, s.window_start, s.scheduled_time;
END $f$;
