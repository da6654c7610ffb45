-- weir_slots_assign: a batch of one config, p_requested sorted, event ids distinct. Outcomes are
-- those of the enum Outcome, and 4: the event was being cancelled just now, ask again.
--
-- Two callers with the same event id: both may place it, one inserts it, the other waits for that
-- commit at the unique index, finds its insert skipped, and gives its place back before it commits.
--
-- Plans must not depend on how full the tables were when the function first ran: a plan made for
-- empty tables would scan them for ever. Hence the settings.

CREATE FUNCTION weir_slots_assign(p_name text, p_event text[], p_requested bigint[],
                                  p_tenant text[], p_random bigint[])
RETURNS TABLE(r_ord bigint, r_outcome int, r_config text, r_tenant text, r_requested bigint,
              r_window bigint, r_scheduled bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off AS $f$
DECLARE
  n int := cardinality(p_event);
  c rate_limit_config%ROWTYPE;
  fresh int[];
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
  SELECT coalesce(array_agg(u.i ORDER BY u.i), '{}') INTO fresh
  FROM unnest(p_event) WITH ORDINALITY u(e, i)
  WHERE (SELECT true FROM rate_limit_event_slot s WHERE s.event_id = u.e) IS NULL;

  IF cardinality(fresh) > 0 THEN
    PERFORM weir_slots_lock_shared(p_name);
    SELECT * INTO c FROM rate_limit_config WHERE config_name = p_name AND active;
    IF FOUND THEN
      otherwise := 2;
      total := (SELECT sum(x) FROM unnest(c.weights) x);
      FOREACH class IN ARRAY CASE WHEN total IS NULL THEN ARRAY[NULL::text] ELSE c.tenants END LOOP
        IF class IS NULL THEN
          of_class := fresh;
        ELSE
          SELECT coalesce(array_agg(u.i ORDER BY u.i), '{}') INTO of_class
          FROM unnest(p_tenant) WITH ORDINALITY u(t, i)
          WHERE (CASE WHEN u.t = ANY (c.tenants) THEN u.t ELSE '*' END) = class
            AND (cardinality(fresh) = n OR u.i = ANY (fresh));
          CONTINUE WHEN cardinality(of_class) = 0;
        END IF;
        IF cardinality(of_class) = n THEN
          wanted := p_requested;
        ELSE
          wanted := array_fill(0::bigint, ARRAY[cardinality(of_class)]);
          FOR k IN 1..cardinality(of_class) LOOP wanted[k] := p_requested[of_class[k]]; END LOOP;
        END IF;
        placed := weir_slot_place(
          c.config_id, c.window_ms, c.max_per_window, c.headroom, c.fair_windows, class,
          CASE WHEN class IS NULL THEN 1 ELSE c.weights[array_position(c.tenants, class)] END,
          coalesce(total, 1), wanted);
        FOR k IN 1..cardinality(of_class) LOOP
          IF placed[k] IS NOT NULL THEN
            i := of_class[k];
            a_w[i] := placed[k];
            low := greatest(placed[k], p_requested[i]);
            a_at[i] := low + p_random[i] % (placed[k] + c.window_ms - low);
            expected := expected + 1;
          END IF;
        END LOOP;
      END LOOP;
    END IF;
  END IF;

  IF expected > 0 THEN
    INSERT INTO rate_limit_event_slot
    SELECT u.e, c.config_id, c.window_ms, u.w, u.at, u.r, u.t
    FROM unnest(p_event, p_requested, p_tenant, a_w, a_at) u(e, r, t, w, at)
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
  SELECT u.i, CASE WHEN u.w IS NOT NULL THEN 0 WHEN s.event_id IS NOT NULL THEN 1
                   ELSE otherwise END,
         CASE WHEN s.event_id IS NOT NULL THEN (
           SELECT g.config_name FROM rate_limit_config g WHERE g.config_id = s.config_id LIMIT 1)
         END,
         s.tenant, s.requested_time, coalesce(u.w, s.window_start),
         CASE WHEN u.w IS NULL THEN s.scheduled_time ELSE u.at END
  FROM unnest(p_event, a_w, a_at) WITH ORDINALITY u(e, w, at, i)
  LEFT JOIN LATERAL (SELECT * FROM rate_limit_event_slot e
                     WHERE u.w IS NULL AND e.event_id = u.e OFFSET 0) s ON true;
END $f$;

-- One place less in a window that this transaction has locked.
CREATE FUNCTION weir_slot_give_back(p_id int, p_size bigint, p_window bigint, p_max bigint,
                                    p_class text)
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  UPDATE rate_limit_window_counter c
  SET slot_count = c.slot_count - 1,
      status = CASE WHEN c.slot_count + c.carried - 1 >= p_max THEN 'CLOSED' ELSE 'OPEN' END
  WHERE c.config_id = p_id AND c.window_ms = p_size AND c.window_start = p_window;
  UPDATE rate_limit_tenant_counter t SET slot_count = t.slot_count - 1
  WHERE t.config_id = p_id AND t.window_ms = p_size AND t.tenant = p_class
    AND t.window_start = p_window AND t.slot_count > 0;
END $f$;

-- Cancels: the rows of windows first, then the event, in the order that assigning takes them.
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
    PERFORM weir_slots_lock_shared(name);
    PERFORM FROM rate_limit_window_counter w WHERE w.config_id = s.config_id
      AND w.window_ms = s.window_ms AND w.window_start = s.window_start FOR UPDATE;
    DELETE FROM rate_limit_event_slot e WHERE e.event_id = p_event
      AND e.config_id = s.config_id AND e.window_ms = s.window_ms
      AND e.window_start = s.window_start AND e.scheduled_time = s.scheduled_time;
    EXIT WHEN FOUND;
  END LOOP;
  SELECT * INTO c FROM rate_limit_config g WHERE g.config_name = name AND g.active;
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
  RETURN QUERY SELECT name, s.tenant, s.requested_time, s.window_start, s.scheduled_time;
END $f$;

-- Moves an event; p_name NULL keeps its config. Raises WS002 or WS003 (the outcome) if it must stay.
CREATE FUNCTION weir_slots_reschedule(p_event text, p_name text, p_requested bigint,
                                      p_random bigint)
RETURNS TABLE(r_config text, r_tenant text, r_requested bigint, r_window bigint,
              r_scheduled bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $f$
DECLARE
  old record;
  fresh record;
BEGIN
  SELECT e.*, coalesce(p_name, g.config_name) AS name INTO old
  FROM rate_limit_event_slot e JOIN rate_limit_config g USING (config_id)
  WHERE e.event_id = p_event LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  -- All locks before the event is touched: who waits for the event must not hold up our search.
  PERFORM weir_slots_lock_shared(old.name);
  PERFORM FROM rate_limit_window_counter w WHERE w.config_id = old.config_id
    AND w.window_ms = old.window_ms AND w.window_start = old.window_start FOR UPDATE;
  PERFORM weir_slots_lock_creation(g.config_id) FROM rate_limit_config g
  WHERE g.config_name = old.name AND g.active;
  PERFORM FROM weir_slots_cancel(p_event);
  SELECT * INTO fresh FROM weir_slots_assign(
    old.name, ARRAY[p_event], ARRAY[p_requested], ARRAY[old.tenant], ARRAY[p_random]);
  IF fresh.r_outcome <> 0 THEN
    RAISE EXCEPTION 'the event keeps its slot' USING ERRCODE = 'WS00' || fresh.r_outcome;
  END IF;
  RETURN QUERY SELECT old.name, old.tenant, p_requested, fresh.r_window, fresh.r_scheduled;
END $f$;
