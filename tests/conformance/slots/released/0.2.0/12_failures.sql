-- How many failures count against an event; see Finish.counts. Attempts are more: they are also used up by leases that ended
-- and by a target that is down. With p_most of them the event is a dead letter, and the answer is 4; whoever reschedules it
-- wants it to be tried as often as before.

DROP FUNCTION IF EXISTS weir_slots_retry(text, int, text, bigint, bigint, int, bigint, bigint, bigint[], bigint[]);

ALTER TABLE rate_limit_event_slot ADD COLUMN failures int NOT NULL DEFAULT 0;

CREATE FUNCTION weir_slots_retry(p_event text, p_attempt int, p_error text, p_at bigint,
                                 p_random bigint, p_version int, p_over bigint, p_now bigint,
                                 p_from bigint[], p_until bigint[], p_counts int, p_most bigint)
RETURNS int LANGUAGE plpgsql SET enable_seqscan = off AS $f$
DECLARE
  t bigint := weir_slots_now(p_now);
  s rate_limit_event_slot%ROWTYPE;
  outcome int;
BEGIN
  SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event;
  IF NOT FOUND THEN RETURN 3; END IF;
  IF s.attempts = p_attempt AND s.state = 3 THEN RETURN 1; END IF;
  IF s.attempts <> p_attempt OR s.state NOT IN (0, 1) OR p_attempt < 1 THEN RETURN 2; END IF;
  IF s.state = 0 AND s.claimed_at IS NULL THEN RETURN 1; END IF;
  IF p_most > 0 AND p_counts > 0 AND s.failures + 1 >= p_most THEN
    outcome := (SELECT f.r_outcome FROM weir_slots_finish(ARRAY[p_event], ARRAY[p_attempt], ARRAY[1]::bigint[],
                                                          ARRAY[p_error], ARRAY[p_over], t) f);
    IF outcome <> 0 THEN RETURN outcome; END IF;
    UPDATE rate_limit_event_slot e SET failures = 0 WHERE e.event_id = p_event;
    RETURN 4;
  END IF;
  BEGIN
    PERFORM FROM weir_slot_move(p_event, NULL, NULL, p_at, p_random, p_version, ARRAY[0, 1],
                                p_attempt, 'failed', p_error, p_from, p_until, p_over, t);
  EXCEPTION
    WHEN SQLSTATE 'WS002' OR SQLSTATE 'WS003' THEN
      SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event AND e.attempts = p_attempt
        AND e.state IN (0, 1) AND e.claimed_at IS NOT NULL FOR UPDATE;
      IF NOT FOUND THEN RETURN 2; END IF;
      UPDATE rate_limit_event_slot e SET state = 0, lease_until = NULL, claimed_at = NULL,
             exec_ms = NULL, exec_window = NULL
      WHERE e.event_id = p_event;
      INSERT INTO rate_limit_event_change VALUES (p_event, t, 'failed', p_error);
      PERFORM weir_slot_end_claim(s, p_over, t);
    WHEN SQLSTATE 'WS010' THEN  -- ended meanwhile: by the same call, or by another claim
      RETURN (SELECT CASE WHEN e.attempts = p_attempt THEN 1 ELSE 2 END
              FROM rate_limit_event_slot e WHERE e.event_id = p_event);
    WHEN SQLSTATE 'WS011' OR SQLSTATE 'WS012' OR SQLSTATE 'WS013' OR SQLSTATE 'WS014' THEN
      RETURN 2;
  END;
  UPDATE rate_limit_event_slot e SET error = p_error, failures = e.failures + p_counts
  WHERE e.event_id = p_event;
  RETURN 0;
END $f$;
