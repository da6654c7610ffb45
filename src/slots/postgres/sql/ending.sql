-- How claims end, and how events move.
--
-- weir_slots_finish: see the enum Finished. p_over says when each execution ended: how long ago, as
-- a number not above 0, or, for tests, a time. exec_window is NULL once the end of the lease has
-- been noticed: the claim was counted as finished then.
--
-- weir_slot_move: gives an event that has or had a slot a new one, in one step. It takes all other
-- locks before the event's, so that a transaction that waits for the event does not hold up the
-- search. Raises WS002 or WS003 (the outcome) if the event must keep its slot, and WS01n if its
-- state n does not allow the move. A move that is not a retry resets the failures: the event may be
-- tried as often as a new one.
--
-- The functions are dropped first: in earlier databases their parameters may have other names.

DROP FUNCTION IF EXISTS weir_slot_end_claim(rate_limit_event_slot, bigint, bigint);
DROP FUNCTION IF EXISTS weir_slots_finish(text[], int[], bigint[], text[], bigint[], bigint);
DROP FUNCTION IF EXISTS weir_slot_move(text, text, bigint, bigint, bigint, int, int[], int, text, text, bigint[], bigint[],
                                       bigint, bigint);
DROP FUNCTION IF EXISTS weir_slots_retry(text, int, text, bigint, bigint, int, bigint, bigint, bigint[], bigint[], int,
                                         bigint);

-- Counts the end of a claim; s is the event as it was claimed, and locked. Without exec_window its
-- lease has ended, which has already been counted.
CREATE FUNCTION weir_slot_end_claim(s rate_limit_event_slot, p_over bigint, p_now bigint)
RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  over bigint := greatest(s.claimed_at, CASE WHEN p_over > 0 THEN p_over ELSE p_now + p_over END);
BEGIN
  IF s.exec_window IS NULL THEN RETURN; END IF;
  over := over - over % s.exec_ms;
  PERFORM weir_slot_count(ARRAY[s.config_id, s.config_id], ARRAY[s.exec_ms, s.exec_ms],
                          ARRAY[s.exec_window, over], ARRAY[0, 0]::bigint[], ARRAY[1, 0]::bigint[],
                          ARRAY[0, (over > s.exec_window)::int]::bigint[]);
END $f$;

CREATE FUNCTION weir_slots_finish(p_event text[], p_attempt int[], p_failed bigint[],
                                  p_error text[], p_over bigint[], p_now bigint)
RETURNS TABLE(r_ord bigint, r_outcome int)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off AS $f$
DECLARE
  t bigint := weir_slots_now(p_now);
  ended bigint[];
  ids int[]; sizes bigint[]; windows bigint[]; others bigint[]; counts bigint[];
BEGIN
  WITH upd AS (
    UPDATE rate_limit_event_slot e
    SET state = CASE WHEN u.failed <> 0 THEN 3 ELSE 2 END, lease_until = NULL,
        error = CASE WHEN u.failed <> 0 THEN u.error END,
        finished_at = greatest(e.claimed_at, CASE WHEN u.over > 0 THEN u.over ELSE t + u.over END)
    FROM (SELECT * FROM unnest(p_event, p_attempt, p_failed, p_error, p_over)
            WITH ORDINALITY x(e, a, failed, error, over, o) ORDER BY x.e) u
    WHERE e.event_id = u.e AND e.attempts = u.a AND u.a > 0 AND e.state IN (0, 1)
      AND e.claimed_at IS NOT NULL
    RETURNING u.o, e.config_id, e.exec_ms, e.exec_window,
              e.finished_at - e.finished_at % e.exec_ms AS other),
  counted AS (
    SELECT d.config_id, d.exec_ms, d.exec_window, d.other, count(*) AS n FROM upd d
    WHERE d.exec_window IS NOT NULL GROUP BY 1, 2, 3, 4)
  SELECT (SELECT array_agg(d.o) FROM upd d), array_agg(g.config_id), array_agg(g.exec_ms),
         array_agg(g.exec_window), array_agg(g.other), array_agg(g.n)
  INTO ended, ids, sizes, windows, others, counts FROM counted g;
  IF ids IS NOT NULL THEN
    PERFORM weir_slot_count(
      ids || ids, sizes || sizes, windows || others,
      array_fill(0::bigint, ARRAY[cardinality(ids) * 2]),
      counts || array_fill(0::bigint, ARRAY[cardinality(ids)]),
      array_fill(0::bigint, ARRAY[cardinality(ids)])
        || (SELECT array_agg(CASE WHEN u.o > u.w THEN u.n ELSE 0 END)
            FROM unnest(windows, others, counts) u(w, o, n)));
  END IF;
  IF cardinality(ended) = cardinality(p_event) THEN
    RETURN QUERY SELECT o, 0 FROM unnest(ended) o;
    RETURN;
  END IF;
  RETURN QUERY
  SELECT u.o, CASE WHEN u.o = ANY (ended) THEN 0 WHEN s.event_id IS NULL THEN 3
                   WHEN s.attempts = u.a AND s.state = CASE WHEN u.failed <> 0 THEN 3 ELSE 2 END THEN 1
                   ELSE 2 END
  FROM unnest(p_event, p_attempt, p_failed) WITH ORDINALITY u(e, a, failed, o)
  LEFT JOIN LATERAL (SELECT * FROM rate_limit_event_slot e WHERE e.event_id = u.e OFFSET 0) s
    ON true;
END $f$;

-- With p_attempt the move also ends that claim, at p_over, and counts its end: only under the
-- event's lock is it certain that no one else has ended it. The config need not be active then: its
-- events are still executed.
CREATE FUNCTION weir_slot_move(p_event text, p_name text, p_requested bigint, p_earliest bigint,
                               p_random bigint, p_version int, p_from int[], p_attempt int,
                               p_what text, p_detail text, p_opens bigint[], p_closes bigint[],
                               p_over bigint DEFAULT 0, p_now bigint DEFAULT 0)
RETURNS TABLE(r_config text, r_tenant text, r_requested bigint, r_window bigint,
              r_scheduled bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $f$
DECLARE
  s rate_limit_event_slot%ROWTYPE;
  old_c rate_limit_config%ROWTYPE;
  c rate_limit_config%ROWTYPE;
  old_name text;
  name text;
  class text;
  earliest bigint;
  placed bigint;
  low bigint;
  lapsed boolean;
BEGIN
  LOOP
    SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event;
    IF NOT FOUND THEN RETURN; END IF;
    lapsed := p_attempt IS NULL AND 0 = ANY (p_from) AND s.state = 1
      AND s.lease_until <= weir_slots_now(p_now);
    IF NOT lapsed AND (NOT s.state = ANY (p_from) OR s.attempts <> coalesce(p_attempt, s.attempts)
        OR (p_attempt IS NOT NULL AND s.claimed_at IS NULL)) THEN
      PERFORM weir_slot_refuse(s.state);
    END IF;
    SELECT g.config_name INTO old_name FROM rate_limit_config g
    WHERE g.config_id = s.config_id LIMIT 1;
    name := coalesce(p_name, old_name);
    PERFORM weir_slots_lock_shared(x.n)
    FROM (SELECT DISTINCT u.n FROM unnest(ARRAY[old_name, name]) u(n) ORDER BY 1) x;
    IF s.state <> 4 THEN
      PERFORM FROM rate_limit_window_counter w WHERE w.config_id = s.config_id
        AND w.window_ms = s.window_ms AND w.window_start = s.window_start FOR UPDATE;
    END IF;
    PERFORM weir_slots_lock_creation(g.config_id) FROM rate_limit_config g
    WHERE g.config_name = name AND (g.active OR p_attempt IS NOT NULL)
    ORDER BY g.version DESC LIMIT 1;
    IF lapsed THEN
      CONTINUE WHEN NOT weir_slot_end_lease(s);
      s.state := 0;
    END IF;
    PERFORM FROM rate_limit_event_slot e
    WHERE e.event_id = p_event AND e.state = s.state AND e.attempts = s.attempts
      AND e.config_id = s.config_id AND e.window_ms = s.window_ms
      AND e.window_start = s.window_start AND e.scheduled_time = s.scheduled_time FOR UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  SELECT * INTO old_c FROM rate_limit_config g
  WHERE g.config_name = old_name AND (g.active OR p_attempt IS NOT NULL)
  ORDER BY g.version DESC LIMIT 1;
  SELECT * INTO c FROM rate_limit_config g
  WHERE g.config_name = name AND (g.active OR p_attempt IS NOT NULL)
  ORDER BY g.version DESC LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the event keeps its slot' USING ERRCODE = 'WS003';
  END IF;
  IF p_version <> c.version AND (p_version > 0 OR c.calendar <> '' OR c.past <> 0) THEN
    RAISE EXCEPTION '%', name USING ERRCODE = 'WS009';
  END IF;
  IF s.state <> 4 THEN PERFORM weir_slot_free(s, old_c); END IF;
  class := weir_slot_class(c.tenants, s.tenant);
  earliest := coalesce(p_earliest, p_requested, s.requested_time);
  placed := (weir_slot_place_open(
    c.config_id, c.window_ms, c.max_per_window, c.headroom, c.fair_windows, nullif(class, ''),
    CASE WHEN class = '' THEN 1 ELSE c.weights[array_position(c.tenants, class)] END,
    coalesce((SELECT sum(x) FROM unnest(c.weights) x)::bigint, 1), ARRAY[earliest], p_opens, p_closes))[1];
  IF placed IS NULL THEN
    RAISE EXCEPTION 'the event keeps its slot' USING ERRCODE = 'WS002';
  END IF;
  low := weir_slot_open_from(p_opens, placed, c.window_ms, earliest);
  UPDATE rate_limit_event_slot e
  SET config_id = c.config_id, window_ms = c.window_ms, window_start = placed,
      scheduled_time = low + p_random % (placed + c.window_ms - low),
      requested_time = coalesce(p_requested, e.requested_time), tenant_class = class, state = 0,
      lease_until = NULL, claimed_at = NULL, exec_ms = NULL, exec_window = NULL,
      finished_at = NULL, failures = CASE WHEN p_attempt IS NULL THEN 0 ELSE e.failures END
  WHERE e.event_id = p_event
  RETURNING e.requested_time, e.window_start, e.scheduled_time
  INTO r_requested, r_window, r_scheduled;
  INSERT INTO rate_limit_event_change
  VALUES (p_event, weir_slots_now(0), p_what, coalesce(p_detail, s.scheduled_time::text));
  IF p_attempt IS NOT NULL THEN PERFORM weir_slot_end_claim(s, p_over, p_now); END IF;
  r_config := name;
  r_tenant := s.tenant;
  RETURN NEXT;
END $f$;

-- After p_most failures that count, the event is a dead letter and the result is 4. Without room
-- for a new slot it keeps the one it has, in its tenant's current class: in a class that no longer
-- exists it would never be claimed.
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
      -- Undone with the rest, and without it a new version could change the classes meanwhile.
      PERFORM weir_slots_lock_shared((SELECT g.config_name FROM rate_limit_config g
                                      WHERE g.config_id = s.config_id LIMIT 1));
      SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event AND e.attempts = p_attempt
        AND e.state IN (0, 1) AND e.claimed_at IS NOT NULL FOR UPDATE;
      IF NOT FOUND THEN RETURN 2; END IF;
      UPDATE rate_limit_event_slot e SET state = 0, lease_until = NULL, claimed_at = NULL,
             exec_ms = NULL, exec_window = NULL,
             tenant_class = weir_slot_class((SELECT g.tenants FROM rate_limit_config g
                                             WHERE g.config_id = e.config_id
                                             ORDER BY g.version DESC LIMIT 1), e.tenant)
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
