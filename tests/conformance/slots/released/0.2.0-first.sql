-- What the first databases of 0.2.0 had instead: the names of some parameters are others.

DROP FUNCTION weir_slot_end_claim(rate_limit_event_slot, bigint, bigint);
DROP FUNCTION weir_slots_finish(text[], int[], bigint[], text[], bigint[], bigint);
DROP FUNCTION weir_slot_move(text, text, bigint, bigint, bigint, int, int[], int, text, text, bigint[], bigint[], bigint,
                             bigint);

CREATE FUNCTION weir_slot_end_claim(s rate_limit_event_slot, p_ended bigint, p_now bigint)
RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  over bigint := CASE WHEN p_ended BETWEEN s.claimed_at AND p_now THEN p_ended ELSE p_now END;
BEGIN
  IF s.exec_window IS NULL THEN RETURN; END IF;
  over := over - over % s.exec_ms;
  PERFORM weir_slot_count(ARRAY[s.config_id, s.config_id], ARRAY[s.exec_ms, s.exec_ms],
                          ARRAY[s.exec_window, over], ARRAY[0, 0]::bigint[], ARRAY[1, 0]::bigint[],
                          ARRAY[0, (over > s.exec_window)::int]::bigint[]);
END $f$;

CREATE FUNCTION weir_slots_finish(p_event text[], p_attempt int[], p_failed bigint[],
                                  p_error text[], p_at bigint[], p_now bigint)
RETURNS TABLE(r_ord bigint, r_outcome int)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off AS $f$
DECLARE
  t bigint := weir_slots_now(p_now);
  ended bigint[];
  ids int[]; sizes bigint[]; windows bigint[]; others bigint[];
BEGIN
  WITH upd AS (
    UPDATE rate_limit_event_slot e
    SET state = CASE WHEN u.failed <> 0 THEN 3 ELSE 2 END, lease_until = NULL,
        error = CASE WHEN u.failed <> 0 THEN u.error END,
        finished_at = CASE WHEN u.at BETWEEN e.claimed_at AND t THEN u.at ELSE t END
    FROM (SELECT * FROM unnest(p_event, p_attempt, p_failed, p_error, p_at)
            WITH ORDINALITY x(e, a, failed, error, at, o) ORDER BY x.e) u
    WHERE e.event_id = u.e AND e.attempts = u.a AND u.a > 0 AND e.state IN (0, 1)
      AND e.claimed_at IS NOT NULL
    RETURNING u.o, e.config_id, e.exec_ms, e.exec_window, e.finished_at)
  SELECT array_agg(d.o), array_agg(d.config_id) FILTER (WHERE d.exec_window IS NOT NULL),
         array_agg(d.exec_ms) FILTER (WHERE d.exec_window IS NOT NULL),
         array_agg(d.exec_window) FILTER (WHERE d.exec_window IS NOT NULL),
         array_agg(d.finished_at - d.finished_at % d.exec_ms)
           FILTER (WHERE d.exec_window IS NOT NULL)
  INTO ended, ids, sizes, windows, others FROM upd d;
  IF ids IS NOT NULL THEN
    PERFORM weir_slot_count(
      ids || ids, sizes || sizes, windows || others,
      array_fill(0::bigint, ARRAY[cardinality(ids) * 2]),
      array_fill(1::bigint, ARRAY[cardinality(ids)])
        || array_fill(0::bigint, ARRAY[cardinality(ids)]),
      array_fill(0::bigint, ARRAY[cardinality(ids)])
        || (SELECT array_agg((u.o > u.w)::int::bigint) FROM unnest(windows, others) u(w, o)));
  END IF;
  RETURN QUERY
  SELECT u.o, CASE WHEN u.o = ANY (ended) THEN 0 WHEN s.event_id IS NULL THEN 3
                   WHEN s.attempts = u.a AND s.state = CASE WHEN u.failed <> 0 THEN 3 ELSE 2 END THEN 1
                   ELSE 2 END
  FROM unnest(p_event, p_attempt, p_failed) WITH ORDINALITY u(e, a, failed, o)
  LEFT JOIN LATERAL (SELECT * FROM rate_limit_event_slot e WHERE e.event_id = u.e OFFSET 0) s
    ON true;
END $f$;

CREATE FUNCTION weir_slot_move(p_event text, p_name text, p_requested bigint, p_earliest bigint,
                               p_random bigint, p_version int, p_from int[], p_attempt int,
                               p_what text, p_detail text, p_opens bigint[], p_closes bigint[],
                               p_ended bigint DEFAULT 0, p_now bigint DEFAULT 0)
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
BEGIN
  LOOP
    SELECT * INTO s FROM rate_limit_event_slot e WHERE e.event_id = p_event;
    IF NOT FOUND THEN RETURN; END IF;
    IF NOT s.state = ANY (p_from) OR s.attempts <> coalesce(p_attempt, s.attempts)
        OR (p_attempt IS NOT NULL AND s.claimed_at IS NULL) THEN
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
    WHERE g.config_name = name AND g.active;
    PERFORM FROM rate_limit_event_slot e
    WHERE e.event_id = p_event AND e.state = s.state AND e.attempts = s.attempts
      AND e.config_id = s.config_id AND e.window_ms = s.window_ms
      AND e.window_start = s.window_start AND e.scheduled_time = s.scheduled_time FOR UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  SELECT * INTO old_c FROM rate_limit_config g WHERE g.config_name = old_name AND g.active;
  SELECT * INTO c FROM rate_limit_config g WHERE g.config_name = name AND g.active;
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
      finished_at = NULL
  WHERE e.event_id = p_event
  RETURNING e.requested_time, e.window_start, e.scheduled_time
  INTO r_requested, r_window, r_scheduled;
  INSERT INTO rate_limit_event_change
  VALUES (p_event, weir_slots_now(0), p_what, coalesce(p_detail, s.scheduled_time::text));
  IF p_attempt IS NOT NULL THEN PERFORM weir_slot_end_claim(s, p_ended, p_now); END IF;
  r_config := name;
  r_tenant := s.tenant;
  RETURN NEXT;
END $f$;
