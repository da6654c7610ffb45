-- Grants per window; weir_slots_finish is in ending.sql.

-- How many grants of a window are used up: its own, claims of earlier windows that ended in it, and
-- claims of earlier windows that have not ended. Of other window sizes, everything that overlaps
-- counts.
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

-- Adds to the counters of windows, in sorted order.
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

-- Makes events whose lease has ended due again. They may have been executed up to that time.
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
