-- Events whose time has passed or whose lease has ended.
--
-- A claim whose lease has ended does not prevent its event from being cancelled or moved. The
-- config's next claim would end it, but there may be none: an operator who cancels payments may
-- have stopped the dispatchers first.

-- Ends a claim whose lease has ended; s is the event as it was read. Returns false if the event has
-- changed since. The caller has locked the row of its window, which is always locked before the
-- event.
CREATE FUNCTION weir_slot_end_lease(s rate_limit_event_slot) RETURNS boolean LANGUAGE plpgsql AS $f$
BEGIN
  UPDATE rate_limit_event_slot e SET state = 0, lease_until = NULL, exec_ms = NULL, exec_window = NULL
  WHERE e.event_id = s.event_id AND e.state = 1 AND e.attempts = s.attempts
    AND e.window_ms = s.window_ms AND e.window_start = s.window_start;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO rate_limit_event_change
  VALUES (s.event_id, s.lease_until, 'lease-ended', coalesce(s.claimed_by, ''));
  PERFORM weir_slot_end_claim(s, s.lease_until, s.lease_until);
  RETURN true;
END $f$;

CREATE OR REPLACE FUNCTION weir_slots_cancel(p_event text)
RETURNS TABLE(r_config text, r_tenant text, r_requested bigint, r_window bigint,
              r_scheduled bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $f$
DECLARE
  s rate_limit_event_slot%ROWTYPE;
  c rate_limit_config%ROWTYPE;
  name text;
  lapsed boolean;
BEGIN
  LOOP
    SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT g.config_name INTO name FROM rate_limit_config g WHERE g.config_id = s.config_id LIMIT 1;
    EXIT WHEN s.state = 4;
    lapsed := s.state = 1 AND s.lease_until <= weir_slots_now(0);
    IF s.state NOT IN (0, 3, 5) AND NOT lapsed THEN PERFORM weir_slot_refuse(s.state); END IF;
    PERFORM weir_slots_lock_shared(name);
    PERFORM FROM rate_limit_window_counter w WHERE w.config_id = s.config_id
      AND w.window_ms = s.window_ms AND w.window_start = s.window_start FOR UPDATE;
    IF lapsed THEN
      CONTINUE WHEN NOT weir_slot_end_lease(s);
      s.state := 0;
    END IF;
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

-- Deletes events that no one will ask for again. A feed may send a cancelled event again until its
-- time has come, and the event must stay cancelled.
CREATE OR REPLACE FUNCTION weir_slots_drop_archived(p_before bigint, p_limit int) RETURNS bigint
LANGUAGE sql AS $f$
  WITH gone AS (
    DELETE FROM rate_limit_event_archive a USING (
      SELECT x.event_id FROM rate_limit_event_archive x WHERE x.finished_at < p_before
        AND x.scheduled_time < p_before
      ORDER BY x.finished_at LIMIT p_limit FOR UPDATE SKIP LOCKED) old
    WHERE a.event_id = old.event_id RETURNING 1)
  SELECT count(*) FROM gone
$f$;
