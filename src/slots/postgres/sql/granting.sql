-- weir_slots_claim: claims of one config are serialized (advisory lock), so a window's grants are
-- known without locking its row; finished only grows, so an outdated value grants too little, never
-- too much. Events are taken with SKIP LOCKED: a claim does not wait for a cancel or a move in
-- progress. Rows of rate_limit_execution come last, in order.
--
-- p_closing: overdue events are executed before this time. They are spread over the rest of their
-- window in the order of their times, each at a random moment of its own part of it.
--
-- Windows are served from the current one to the one that contains the horizon, each with the
-- oldest events that are due by then: events that did not fit into a window are first in the next
-- one.
--
-- Each class of tenants has its share of a window's grants, the oldest events first. Fractional
-- shares are rounded at random, all with the same random number (shift), so that they add up: a
-- class with a third of a grant gets one in three.

-- How many more events a window may grant. A grant may still be open when later windows begin, so a
-- later window that already has grants, which were claimed ahead, must have room for it too if it
-- begins before the lease can have ended.
DROP FUNCTION IF EXISTS weir_slot_room(int, bigint, bigint, bigint);
CREATE FUNCTION weir_slot_room(p_id int, p_size bigint, p_max bigint, p_window bigint, p_lease bigint)
RETURNS bigint LANGUAGE sql AS $f$
  SELECT p_max - greatest(
    weir_slot_used(p_id, p_size, p_window),
    (SELECT max(weir_slot_used(p_id, p_size, later.w))
     FROM (SELECT DISTINCT greatest(p_window + p_size,
                                    x.window_start - x.window_start % p_size) AS w
           FROM (SELECT DISTINCT g.window_ms AS size FROM rate_limit_config g
                 WHERE g.config_id = p_id) o
           JOIN rate_limit_execution x ON x.config_id = p_id AND x.window_ms = o.size
             AND x.window_start > p_window + p_size - o.size
             AND x.window_start < p_window + 2 * p_size + p_lease AND x.granted > 0) later))
$f$;

CREATE OR REPLACE FUNCTION weir_slots_claim(p_name text, p_max int, p_lease bigint, p_ahead bigint,
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
  total bigint;
  shift bigint;
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
  shift := p_random % coalesce(total, 1);
  w := t - t % c.window_ms;
  FOR round IN 1..64 LOOP
    EXIT WHEN wants = 0 OR w > t + p_ahead;
    horizon := least(t + p_ahead, w + c.window_ms - 1);
    budget := least(wants, weir_slot_room(c.config_id, c.window_ms, c.max_per_window, w,
                                          p_lease));
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
      SELECT k.class, k.share, d.*
      FROM (SELECT u.class, (shift + u.upto * budget) / coalesce(total, 1)
                            - (shift + (u.upto - u.weight) * budget) / coalesce(total, 1) AS share
            FROM (SELECT t.class, t.weight, (sum(t.weight) OVER (ORDER BY t.o))::bigint AS upto
                  FROM unnest(CASE WHEN total IS NULL THEN ARRAY[''] ELSE c.tenants END,
                              CASE WHEN total IS NULL THEN ARRAY[1::bigint] ELSE c.weights END)
                       WITH ORDINALITY t(class, weight, o)) u) k
      CROSS JOIN LATERAL (
        SELECT e.ctid AS at, e.scheduled_time
        FROM rate_limit_event_slot e
        WHERE e.config_id = c.config_id AND e.tenant_class = k.class AND e.state = 0
          AND e.scheduled_time <= horizon
        ORDER BY e.scheduled_time LIMIT budget FOR UPDATE SKIP LOCKED) d),
    ranked AS (
      SELECT n.at, n.scheduled_time,
             row_number() OVER (PARTITION BY n.class ORDER BY n.scheduled_time) > n.share AS beyond
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
