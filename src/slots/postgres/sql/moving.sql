-- Assigning, cancelling and moving, with states. They replace those of assigning.sql.
--
-- weir_slots_assign: p_earliest is sorted: the requested time, or the next one that the config's
-- calendar allows. p_version is the config's version that p_earliest was worked out with; 0: with
-- none, which is right for a config without a calendar. Outcomes are those of the enum Outcome, and
-- 4: the event was being archived just now, ask again; 9: the config has another version.
--
-- weir_slot_move: a new slot for an event that has one or had one, in one step. All locks before
-- the event is touched: who waits for the event must not hold up the search. Raises WS002, WS003 or
-- WS009 (the outcome) if it must stay, and WS01n if its state n does not allow it.

DROP FUNCTION weir_slots_assign(text, text[], bigint[], text[], bigint[]);
DROP FUNCTION weir_slots_cancel(text);
DROP FUNCTION weir_slots_reschedule(text, text, bigint, bigint);

CREATE FUNCTION weir_slots_assign(p_name text, p_event text[], p_requested bigint[],
                                  p_earliest bigint[], p_tenant text[], p_random bigint[],
                                  p_payload text[], p_version int)
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
    IF FOUND AND p_version <> c.version AND (p_version > 0 OR c.calendar <> '' OR c.past <> 0) THEN
      otherwise := 9;
    ELSIF FOUND THEN
      otherwise := 2;
      total := (SELECT sum(x) FROM unnest(c.weights) x);
      FOREACH class IN ARRAY CASE WHEN total IS NULL THEN ARRAY[NULL::text] ELSE c.tenants END LOOP
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
        placed := weir_slot_place(
          c.config_id, c.window_ms, c.max_per_window, c.headroom, c.fair_windows, class,
          CASE WHEN class IS NULL THEN 1 ELSE c.weights[array_position(c.tenants, class)] END,
          coalesce(total, 1), wanted);
        FOR k IN 1..cardinality(of_class) LOOP
          IF placed[k] IS NOT NULL THEN
            i := of_class[k];
            a_w[i] := placed[k];
            low := greatest(placed[k], p_earliest[i]);
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
         CASE WHEN u.w IS NOT NULL THEN 0 WHEN s.event_id IS NULL THEN otherwise
              WHEN s.state = 4 THEN 6
              WHEN s.requested_time = u.r AND s.config_name = p_name THEN 1 ELSE 5 END,
         s.config_name, s.tenant, s.requested_time, coalesce(u.w, s.window_start),
         CASE WHEN u.w IS NULL THEN s.scheduled_time ELSE u.at END
  FROM unnest(p_event, p_requested, a_w, a_at) WITH ORDINALITY u(e, r, w, at, i)
  LEFT JOIN LATERAL (
    SELECT e.*, (SELECT g.config_name FROM rate_limit_config g
                 WHERE g.config_id = e.config_id LIMIT 1) AS config_name
    FROM rate_limit_event_slot e WHERE u.w IS NULL AND e.event_id = u.e OFFSET 0) s ON true;
END $f$;

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
    IF s.state NOT IN (0, 5) THEN PERFORM weir_slot_refuse(s.state); END IF;
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

CREATE FUNCTION weir_slot_move(p_event text, p_name text, p_requested bigint, p_earliest bigint,
                               p_random bigint, p_version int, p_from int[], p_attempt int,
                               p_what text, p_detail text)
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
    IF NOT s.state = ANY (p_from) OR s.attempts <> coalesce(p_attempt, s.attempts) THEN
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
  placed := (weir_slot_place(
    c.config_id, c.window_ms, c.max_per_window, c.headroom, c.fair_windows, nullif(class, ''),
    CASE WHEN class = '' THEN 1 ELSE c.weights[array_position(c.tenants, class)] END,
    coalesce((SELECT sum(x) FROM unnest(c.weights) x)::bigint, 1), ARRAY[earliest]))[1];
  IF placed IS NULL THEN
    RAISE EXCEPTION 'the event keeps its slot' USING ERRCODE = 'WS002';
  END IF;
  low := greatest(placed, earliest);
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
  r_config := name;
  r_tenant := s.tenant;
  RETURN NEXT;
END $f$;
