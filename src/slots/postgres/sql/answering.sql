-- weir_slots_assign: assigns a batch of one config. p_earliest is sorted (the requested time, or
-- the next one that the calendar allows), and event ids are distinct. Outcomes are those of the
-- enum Outcome, and 4: the event was just being archived, call again. If two callers send the same
-- event id, both may place it: one inserts it, the other waits for that commit at the unique index,
-- finds its insert skipped, and frees its place before it commits. The SET clauses keep plans
-- independent of how full the tables were when the function first ran: a plan made for empty tables
-- would keep scanning them.
--
-- p_version is the version of the config from which p_earliest, p_from and p_until were computed; 0
-- is correct for a config that has no calendar and keeps the past. On a mismatch nothing is done
-- and the outcome is 9: read the config and call again. p_earliest is -1 for an event that the
-- config refuses because its time has passed; unless it already exists, its outcome is 7. An event
-- that got no window only because other transactions hold some (outcome 2) has -2 as its time: call
-- again soon.
--
-- An event that already exists counts as the same one only if config, time, tenant and payload are
-- those of the first request; otherwise the outcome is 5. Payloads are not compared where none was
-- kept: in the archive, and for events that are older than the states (state 5).

CREATE OR REPLACE FUNCTION weir_slots_assign(p_name text, p_event text[], p_requested bigint[],
                                             p_earliest bigint[], p_tenant text[], p_random bigint[],
                                             p_payload text[], p_version int, p_from bigint[],
                                             p_until bigint[])
RETURNS TABLE(r_ord bigint, r_outcome int, r_config text, r_tenant text, r_requested bigint,
              r_window bigint, r_scheduled bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off AS $f$
DECLARE
  n int := cardinality(p_event);
  c rate_limit_config%ROWTYPE;
  fresh int[];
  known boolean[];
  of_class int[];
  class text;
  wanted bigint[];
  placed bigint[];
  a_w bigint[] := array_fill(NULL::bigint, ARRAY[n]);
  a_at bigint[] := array_fill(NULL::bigint, ARRAY[n]);
  otherwise int := 3;
  expected int := 0;
  inserted int;
  total bigint;
  low bigint;
  i int;
  k int;
BEGIN
  SELECT coalesce(array_agg(x.i ORDER BY x.i) FILTER (WHERE NOT x.known), '{}'),
         array_agg(x.known ORDER BY x.i)
  INTO fresh, known
  FROM (SELECT u.i, coalesce(
          (SELECT true FROM rate_limit_event_slot s WHERE s.event_id = u.e),
          (SELECT true FROM rate_limit_event_archive a WHERE a.event_id = u.e), false) AS known
        FROM unnest(p_event) WITH ORDINALITY u(e, i)) x;

  IF cardinality(fresh) > 0 THEN
    PERFORM weir_slots_lock_shared(p_name);
    SELECT * INTO c FROM rate_limit_config WHERE config_name = p_name AND active;
    IF FOUND AND p_version <> c.version AND (p_version > 0 OR c.calendar <> '' OR c.past <> 0) THEN
      otherwise := 9;
    ELSIF FOUND THEN
      otherwise := 2;
      IF p_earliest[1] < 0 THEN  -- refused; they are sorted
        fresh := ARRAY(SELECT u.i FROM unnest(fresh) u(i) WHERE p_earliest[u.i] >= 0 ORDER BY 1);
      END IF;
      total := (SELECT sum(x) FROM unnest(c.weights) x);
      FOREACH class IN ARRAY CASE WHEN total IS NULL THEN ARRAY[NULL::text] ELSE c.tenants END LOOP
        EXIT WHEN cardinality(fresh) = 0;
        IF class IS NULL THEN
          of_class := fresh;
        ELSE
          SELECT coalesce(array_agg(u.i ORDER BY u.i), '{}') INTO of_class
          FROM unnest(p_tenant) WITH ORDINALITY u(t, i)
          WHERE weir_slot_class(c.tenants, u.t) = class
            AND (cardinality(fresh) = n OR u.i = ANY (fresh));
          CONTINUE WHEN cardinality(of_class) = 0;
        END IF;
        IF cardinality(of_class) = n THEN
          wanted := p_earliest;
        ELSE
          wanted := array_fill(0::bigint, ARRAY[cardinality(of_class)]);
          FOR k IN 1..cardinality(of_class) LOOP wanted[k] := p_earliest[of_class[k]]; END LOOP;
        END IF;
        PERFORM set_config('weir.slots_held', '', true);
        placed := weir_slot_place_open(
          c.config_id, c.window_ms, c.max_per_window, c.headroom, c.fair_windows, class,
          CASE WHEN class IS NULL THEN 1 ELSE c.weights[array_position(c.tenants, class)] END,
          coalesce(total, 1), wanted, p_from, p_until);
        FOR k IN 1..cardinality(of_class) LOOP
          i := of_class[k];
          IF placed[k] IS NULL THEN
            a_at[i] := CASE WHEN current_setting('weir.slots_held', true) = 'yes' THEN -2 END;
          ELSE
            a_w[i] := placed[k];
            low := CASE WHEN p_from IS NULL THEN greatest(placed[k], p_earliest[i])
              ELSE weir_slot_open_from(p_from, placed[k], c.window_ms, p_earliest[i]) END;
            a_at[i] := low + p_random[i] % (placed[k] + c.window_ms - low);
            expected := expected + 1;
          END IF;
        END LOOP;
      END LOOP;
    END IF;
  END IF;

  IF expected > 0 THEN
    INSERT INTO rate_limit_event_slot(event_id, config_id, window_ms, window_start, scheduled_time,
                                      requested_time, tenant, tenant_class, created_at, payload)
    SELECT u.e, c.config_id, c.window_ms, u.w, u.at, u.r, u.t, weir_slot_class(c.tenants, u.t),
           (extract(epoch FROM now()) * 1000)::bigint, u.p
    FROM unnest(p_event, p_requested, p_tenant, p_payload, a_w, a_at) u(e, r, t, p, w, at)
    WHERE u.w IS NOT NULL ORDER BY u.e
    ON CONFLICT (event_id) DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted < expected THEN
      FOR i, class IN
        SELECT u.i, CASE WHEN u.t = ANY (c.tenants) THEN u.t ELSE '*' END
        FROM unnest(p_event, p_tenant, a_w) WITH ORDINALITY u(e, t, w, i)
        WHERE u.w IS NOT NULL AND (
          SELECT true FROM rate_limit_event_slot s
          WHERE s.event_id = u.e AND s.xmin = pg_current_xact_id()::xid) IS NULL
      LOOP
        PERFORM weir_slot_give_back(c.config_id, c.window_ms, a_w[i], c.max_per_window, class);
        a_w[i] := NULL;
        otherwise := 4;
      END LOOP;
    END IF;
  END IF;

  RETURN QUERY
  SELECT u.i,
         CASE WHEN u.w IS NOT NULL THEN 0 WHEN s.event_id IS NULL THEN
                CASE WHEN known[u.i] THEN 4 WHEN p_earliest[u.i] < 0 AND otherwise NOT IN (3, 9) THEN 7 ELSE otherwise END
              WHEN s.requested_time <> u.r OR s.config_name <> p_name
                OR s.tenant IS DISTINCT FROM u.t OR s.payload IS DISTINCT FROM u.p THEN 5
              WHEN s.state = 4 THEN 6 ELSE 1 END,
         s.config_name, s.tenant, s.requested_time, coalesce(u.w, s.window_start),
         CASE WHEN u.w IS NULL AND s.event_id IS NOT NULL THEN s.scheduled_time ELSE u.at END
  FROM unnest(p_event, p_requested, p_tenant, p_payload, a_w, a_at) WITH ORDINALITY u(e, r, t, p, w, at, i)
  LEFT JOIN LATERAL (
    SELECT e.*, (SELECT g.config_name FROM rate_limit_config g
                 WHERE g.config_id = e.config_id LIMIT 1) AS config_name
    FROM (SELECT l.event_id, l.config_id, l.tenant, l.requested_time, l.window_start,
                 l.scheduled_time, l.state,
                 CASE WHEN l.state = 5 THEN u.p ELSE l.payload END AS payload
          FROM rate_limit_event_slot l WHERE u.w IS NULL AND l.event_id = u.e
          UNION ALL
          SELECT a.event_id, a.config_id, a.tenant, a.requested_time, a.window_start,
                 a.scheduled_time, a.state, u.p
          FROM rate_limit_event_archive a WHERE u.w IS NULL AND a.event_id = u.e
          LIMIT 1) e OFFSET 0) s ON true;
END $f$;
