-- weir_slots_claim: claims of one config go one after another (advisory lock), so what a window has
-- granted is known without locking its row; finished only grows, so reading it late grants too
-- little, never too much. Events are taken with SKIP LOCKED: a cancel or a move under way is not
-- waited for. Rows of rate_limit_execution come last, in order.
--
-- p_closing: what is overdue is executed before it. It is spread over the rest of its window in the
-- order of its times, each event at a random moment of its own part of it.
--
-- Windows are served from the present one to the one in which the horizon lies, each with the oldest
-- events that are due by then: what did not fit into a window is first in the next one.
--
-- weir_slots_finish: see the enum Finished. p_over is how long ago each execution was over, as a number not above 0,
-- or, for tests, a time. exec_window is NULL after the lease has ended and was
-- noticed: that claim has been counted as finished then.

-- How many grants of a window are used up: its own, what ended in it of earlier windows, and what
-- was claimed for earlier windows and has not ended. Of another window size counts all that
-- overlaps.
CREATE FUNCTION weir_slot_used(p_id int, p_size bigint, p_window bigint) RETURNS bigint
LANGUAGE sql AS $f$
  SELECT coalesce((SELECT x.granted + x.spilled FROM rate_limit_execution x
                   WHERE x.config_id = p_id AND x.window_ms = p_size
                     AND x.window_start = p_window), 0)
    + coalesce((SELECT sum(x.granted - x.finished) FROM rate_limit_execution x
                WHERE x.config_id = p_id AND x.granted > x.finished
                  AND x.window_start < p_window + p_size
                  AND NOT (x.window_ms = p_size AND x.window_start = p_window)
                  AND (x.window_ms = p_size OR x.window_start + x.window_ms <= p_window)), 0)::bigint
    + coalesce((SELECT sum(x.granted + x.spilled)
                FROM (SELECT DISTINCT g.window_ms AS size FROM rate_limit_config g
                      WHERE g.config_id = p_id AND g.window_ms <> p_size) o
                JOIN rate_limit_execution x ON x.config_id = p_id AND x.window_ms = o.size
                  AND x.window_start > p_window - o.size
                  AND x.window_start < p_window + p_size), 0)::bigint
$f$;

-- How many more a window may grant. A grant may still be open when later windows begin, so one that has grants already,
-- which were claimed ahead, must have room for it as well.
CREATE FUNCTION weir_slot_room(p_id int, p_size bigint, p_max bigint, p_window bigint)
RETURNS bigint LANGUAGE sql AS $f$
  SELECT p_max - greatest(
    weir_slot_used(p_id, p_size, p_window),
    (SELECT max(weir_slot_used(p_id, p_size, later.w))
     FROM (SELECT DISTINCT greatest(p_window + p_size,
                                    x.window_start - x.window_start % p_size) AS w
           FROM (SELECT DISTINCT g.window_ms AS size FROM rate_limit_config g
                 WHERE g.config_id = p_id) o
           JOIN rate_limit_execution x ON x.config_id = p_id AND x.window_ms = o.size
             AND x.window_start > p_window + p_size - o.size AND x.granted > 0) later))
$f$;

-- Adds to the counters of windows, in order.
CREATE FUNCTION weir_slot_count(p_id int[], p_size bigint[], p_window bigint[], p_granted bigint[],
                                p_finished bigint[], p_spilled bigint[])
RETURNS void LANGUAGE sql AS $f$
  INSERT INTO rate_limit_execution AS x
  SELECT u.id, u.size, u.w, sum(u.g), sum(u.f), sum(u.s)
  FROM unnest(p_id, p_size, p_window, p_granted, p_finished, p_spilled) u(id, size, w, g, f, s)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (config_id, window_ms, window_start)
  DO UPDATE SET granted = x.granted + excluded.granted, finished = x.finished + excluded.finished,
                spilled = x.spilled + excluded.spilled
$f$;

-- Claims whose lease has ended are due again. They may have been executed until then.
CREATE FUNCTION weir_slot_end_leases(c rate_limit_config, p_now bigint)
RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  sizes bigint[]; windows bigint[]; ends bigint[];
BEGIN
  WITH gone AS (
    SELECT e.ctid AS at, e.exec_ms, e.exec_window, e.lease_until FROM rate_limit_event_slot e
    WHERE e.config_id = c.config_id AND e.state = 1 AND e.lease_until <= p_now
    ORDER BY e.lease_until LIMIT 10000 FOR UPDATE SKIP LOCKED),
  freed AS (
    UPDATE rate_limit_event_slot e
    SET state = 0, lease_until = NULL, exec_ms = NULL, exec_window = NULL,
        tenant_class = weir_slot_class(c.tenants, e.tenant)
    FROM gone WHERE e.ctid = gone.at
    RETURNING e.event_id, e.claimed_by, gone.exec_ms, gone.exec_window, gone.lease_until),
  noted AS (
    INSERT INTO rate_limit_event_change
    SELECT f.event_id, f.lease_until, 'lease-ended', coalesce(f.claimed_by, '') FROM freed f)
  SELECT array_agg(f.exec_ms), array_agg(f.exec_window), array_agg(f.lease_until)
  INTO sizes, windows, ends FROM freed f;
  IF sizes IS NULL THEN RETURN; END IF;
  PERFORM weir_slot_count(
    array_fill(c.config_id, ARRAY[cardinality(sizes) * 2]),
    sizes || (SELECT array_agg(c.window_ms) FROM unnest(sizes)),
    windows || (SELECT array_agg(u.t - u.t % c.window_ms) FROM unnest(ends) u(t)),
    array_fill(0::bigint, ARRAY[cardinality(sizes) * 2]),
    array_fill(1::bigint, ARRAY[cardinality(sizes)])
      || array_fill(0::bigint, ARRAY[cardinality(sizes)]),
    array_fill(0::bigint, ARRAY[cardinality(sizes)])
      || (SELECT array_agg(CASE WHEN u.s = c.window_ms AND u.w = u.t - u.t % c.window_ms THEN 0
                                ELSE 1 END) FROM unnest(sizes, windows, ends) u(s, w, t)));
END $f$;

CREATE FUNCTION weir_slots_claim(p_name text, p_max int, p_lease bigint, p_ahead bigint,
                                 p_by text, p_now bigint, p_random bigint,
                                 p_closing bigint DEFAULT 9223372036854775807)
RETURNS TABLE(r_event text, r_tenant text, r_requested bigint, r_window bigint,
              r_scheduled bigint, r_attempt int, r_execute bigint, r_lease bigint, r_payload text,
              r_now bigint, r_capped boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off AS $f$
DECLARE
  c rate_limit_config%ROWTYPE;
  t bigint;
  w bigint;
  horizon bigint;
  budget bigint;
  rest bigint;
  taken int;
  lost int := 0;
  total bigint;
  wants int := p_max;
  capped boolean := false;
BEGIN
  PERFORM weir_slots_lock_shared(p_name);
  SELECT * INTO c FROM rate_limit_config g WHERE g.config_name = p_name
  ORDER BY g.version DESC LIMIT 1;
  IF NOT FOUND THEN RAISE EXCEPTION 'no such config' USING ERRCODE = 'WS003'; END IF;
  PERFORM pg_advisory_xact_lock(2003134837, c.config_id);
  t := weir_slots_now(p_now);
  PERFORM weir_slot_end_leases(c, t);
  total := (SELECT sum(x) FROM unnest(c.weights) x);
  w := t - t % c.window_ms;
  FOR round IN 1..8 LOOP
    EXIT WHEN wants = 0 OR w > t + p_ahead;
    horizon := least(t + p_ahead, w + c.window_ms - 1);
    budget := least(wants, weir_slot_room(c.config_id, c.window_ms, c.max_per_window, w));
    capped := false;
    IF budget <= 0 THEN
      capped := EXISTS (
        SELECT FROM unnest(CASE WHEN total IS NULL THEN ARRAY[''] ELSE c.tenants END) k(class)
        WHERE (SELECT true FROM rate_limit_event_slot e WHERE e.config_id = c.config_id
                 AND e.tenant_class = k.class AND e.state = 0 AND e.scheduled_time <= horizon
               LIMIT 1));
      w := w + c.window_ms;
      CONTINUE;
    END IF;
    rest := least(w + c.window_ms - greatest(t, w), 10000, p_closing - greatest(t, w));
    RETURN QUERY
    WITH near AS MATERIALIZED (
      SELECT k.class, k.weight, d.*
      FROM unnest(CASE WHEN total IS NULL THEN ARRAY[''] ELSE c.tenants END,
                  CASE WHEN total IS NULL THEN ARRAY[1::bigint] ELSE c.weights END) k(class, weight)
      CROSS JOIN LATERAL (
        SELECT e.ctid AS at, e.scheduled_time
        FROM rate_limit_event_slot e
        WHERE e.config_id = c.config_id AND e.tenant_class = k.class AND e.state = 0
          AND e.scheduled_time <= horizon
        ORDER BY e.scheduled_time LIMIT budget FOR UPDATE SKIP LOCKED) d),
    ranked AS (
      SELECT n.at, n.scheduled_time,
             row_number() OVER (PARTITION BY n.class ORDER BY n.scheduled_time)
               > greatest(1, budget * n.weight / coalesce(total, 1)) AS beyond
      FROM near n),
    best AS (
      SELECT r.at, r.scheduled_time FROM ranked r ORDER BY r.beyond, r.scheduled_time LIMIT budget),
    timed AS (
      SELECT b.at, row_number() OVER (ORDER BY b.scheduled_time) - 1 AS rank,
             count(*) FILTER (WHERE b.scheduled_time < w) OVER () AS late
      FROM best b),
    chosen AS (  -- a few that are late are not made later than they are
      SELECT m.*, least(rest, greatest(1, m.late * 4 * c.window_ms / c.max_per_window)) AS span
      FROM timed m)
    UPDATE rate_limit_event_slot e
    SET state = 1, attempts = e.attempts + 1, claimed_at = t, claimed_by = p_by,
        exec_ms = c.window_ms, exec_window = w, finished_at = NULL,
        lease_until = p_lease + CASE WHEN e.scheduled_time >= w THEN greatest(t, e.scheduled_time)
          ELSE greatest(t, w) + (chosen.rank * chosen.span
                 + (p_random + hashtext(e.event_id)::bigint & 2147483647) % chosen.span) / chosen.late END
    FROM chosen WHERE e.ctid = chosen.at
    RETURNING e.event_id, e.tenant, e.requested_time, e.window_start, e.scheduled_time, e.attempts,
              e.lease_until - p_lease, e.lease_until, e.payload, t, false;
    GET DIAGNOSTICS taken = ROW_COUNT;
    IF taken > 0 THEN  -- the room of the next window depends on it
      PERFORM weir_slot_count(ARRAY[c.config_id], ARRAY[c.window_ms], ARRAY[w],
                              ARRAY[taken]::bigint[], ARRAY[0]::bigint[], ARRAY[0]::bigint[]);
    END IF;
    wants := wants - taken;
    w := w + c.window_ms;
  END LOOP;
  RETURN QUERY SELECT NULL::text, NULL::text, NULL::bigint, NULL::bigint, NULL::bigint, NULL::int,
                      NULL::bigint, NULL::bigint, NULL::text, t, capped;
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

CREATE FUNCTION weir_slots_backlogs(p_now bigint)
RETURNS TABLE(r_config text, r_now bigint, r_window bigint, r_size bigint, r_cap bigint,
              r_due bigint, r_oldest bigint, r_claimed bigint, r_granted bigint, r_failed bigint,
              r_executed boolean)
LANGUAGE sql AS $f$
  WITH c AS (
    SELECT DISTINCT ON (g.config_name) g.*, weir_slots_now(p_now) AS t FROM rate_limit_config g
    ORDER BY g.config_name, g.version DESC)
  SELECT c.config_name, c.t, c.t - c.t % c.window_ms, c.window_ms, c.max_per_window, due.n,
         coalesce(due.oldest, 0),
         coalesce((SELECT sum(x.granted - x.finished) FROM rate_limit_execution x
                   WHERE x.config_id = c.config_id AND x.granted > x.finished), 0)::bigint,
         coalesce((SELECT x.granted FROM rate_limit_execution x
                   WHERE x.config_id = c.config_id AND x.window_ms = c.window_ms
                     AND x.window_start = c.t - c.t % c.window_ms), 0),
         (SELECT count(*) FROM (SELECT FROM rate_limit_event_slot e
                                WHERE e.state = 3 AND e.config_id = c.config_id
                                LIMIT 1000000) f),
         EXISTS (SELECT FROM rate_limit_execution x WHERE x.config_id = c.config_id)
  FROM c CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(d.scheduled_time) AS oldest
    FROM unnest(CASE WHEN cardinality(c.tenants) = 0 THEN ARRAY[''] ELSE c.tenants END) k(class)
    CROSS JOIN LATERAL (
      SELECT e.scheduled_time FROM rate_limit_event_slot e
      WHERE e.config_id = c.config_id AND e.tenant_class = k.class AND e.state = 0
        AND e.scheduled_time <= c.t
      ORDER BY e.scheduled_time LIMIT 1000000) d) due
$f$;
