-- Assigning, moving and claiming, under calendars too.
--
-- weir_slots_assign: a batch of one config, p_earliest sorted (the requested time, or the next one
-- that the calendar allows), event ids distinct. Outcomes are those of the enum Outcome, and 4: the
-- event was being archived just now, ask again. Two callers with the same event id: both may place
-- it, one inserts it, the other waits for that commit at the unique index, finds its insert
-- skipped, and gives its place back before it commits. Plans must not depend on how full the tables
-- were when the function first ran: a plan made for empty tables would keep scanning them. Hence
-- the settings.
--
-- weir_slot_move: a new slot for an event that has one or had one, in one step. All locks before
-- the event is touched: who waits for the event must not hold up the search. Raises WS002 or WS003
-- (the outcome) if it must stay, and WS01n if its state n does not allow it.
--
-- p_version is the version of the config that p_earliest, p_from and p_until were worked out with; 0 is right for
-- one without a calendar that keeps the past. Otherwise nothing is done and the answer is 9, or WS009 is raised:
-- read the config and ask again. p_earliest is -1 for an event that the config refuses because its time has
-- passed; if the event is not there already, its outcome is 7.

DROP FUNCTION IF EXISTS weir_slots_assign(text, text[], bigint[], bigint[], text[], bigint[], text[], int);
DROP FUNCTION IF EXISTS weir_slot_move(text, text, bigint, bigint, bigint, int, int[], int, text, text);
DROP FUNCTION IF EXISTS weir_slots_retry(text, int, text, bigint, bigint, int, bigint, bigint);

CREATE FUNCTION weir_slots_assign(p_name text, p_event text[], p_requested bigint[],
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
        placed := weir_slot_place_open(
          c.config_id, c.window_ms, c.max_per_window, c.headroom, c.fair_windows, class,
          CASE WHEN class IS NULL THEN 1 ELSE c.weights[array_position(c.tenants, class)] END,
          coalesce(total, 1), wanted, p_from, p_until);
        FOR k IN 1..cardinality(of_class) LOOP
          IF placed[k] IS NOT NULL THEN
            i := of_class[k];
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
              WHEN s.requested_time <> u.r OR s.config_name <> p_name THEN 5
              WHEN s.state = 4 THEN 6 ELSE 1 END,
         s.config_name, s.tenant, s.requested_time, coalesce(u.w, s.window_start),
         CASE WHEN u.w IS NULL THEN s.scheduled_time ELSE u.at END
  FROM unnest(p_event, p_requested, a_w, a_at) WITH ORDINALITY u(e, r, w, at, i)
  LEFT JOIN LATERAL (
    SELECT e.*, (SELECT g.config_name FROM rate_limit_config g
                 WHERE g.config_id = e.config_id LIMIT 1) AS config_name
    FROM (SELECT l.event_id, l.config_id, l.tenant, l.requested_time, l.window_start,
                 l.scheduled_time, l.state
          FROM rate_limit_event_slot l WHERE u.w IS NULL AND l.event_id = u.e
          UNION ALL
          SELECT a.event_id, a.config_id, a.tenant, a.requested_time, a.window_start,
                 a.scheduled_time, a.state
          FROM rate_limit_event_archive a WHERE u.w IS NULL AND a.event_id = u.e
          LIMIT 1) e OFFSET 0) s ON true;
END $f$;

-- Counts that a claim ended; s is the event as it was claimed, and locked. Without a window its lease has ended, and that
-- was counted.
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

-- With p_attempt it is the end of that claim, told by p_over, which is counted here: only under the lock of the event is it
-- certain that nobody else has ended it.
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
  IF p_attempt IS NOT NULL THEN PERFORM weir_slot_end_claim(s, p_over, p_now); END IF;
  r_config := name;
  r_tenant := s.tenant;
  RETURN NEXT;
END $f$;

-- Nothing is executed while the calendar is closed, nor claimed ahead beyond the cut-off. The clock is read after
-- the lock, so that a claim that waited for it does not take a window that has passed.
CREATE FUNCTION weir_slots_claim_open(p_name text, p_max int, p_lease bigint, p_ahead bigint,
                                      p_by text, p_now bigint, p_random bigint, p_version int,
                                      p_from bigint[], p_until bigint[])
RETURNS TABLE(r_event text, r_tenant text, r_requested bigint, r_window bigint,
              r_scheduled bigint, r_attempt int, r_execute bigint, r_lease bigint, r_payload text,
              r_now bigint, r_capped boolean)
LANGUAGE plpgsql AS $f$
DECLARE
  c rate_limit_config%ROWTYPE;
  t bigint;
  closing bigint;
BEGIN
  PERFORM weir_slots_lock_shared(p_name);
  SELECT * INTO c FROM rate_limit_config g WHERE g.config_name = p_name
  ORDER BY g.version DESC LIMIT 1;
  IF NOT FOUND THEN RAISE EXCEPTION 'no such config' USING ERRCODE = 'WS003'; END IF;
  IF p_version <> c.version AND (p_version > 0 OR c.calendar <> '') THEN
    RAISE EXCEPTION '%', p_name USING ERRCODE = 'WS009';
  END IF;
  IF p_from IS NULL THEN
    RETURN QUERY SELECT * FROM weir_slots_claim(p_name, p_max, p_lease, p_ahead, p_by, p_now, p_random);
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(2003134837, c.config_id);
  t := weir_slots_now(p_now);
  closing := (SELECT u.b FROM unnest(p_from, p_until) u(a, b) WHERE u.a <= t AND t < u.b LIMIT 1);
  IF closing IS NOT NULL THEN
    RETURN QUERY SELECT * FROM weir_slots_claim(p_name, p_max, p_lease, least(p_ahead, closing - 1 - t),
                                                p_by, t, p_random, closing);
    RETURN;
  END IF;
  PERFORM weir_slot_end_leases(c, t);
  RETURN QUERY SELECT NULL::text, NULL::text, NULL::bigint, NULL::bigint, NULL::bigint, NULL::int,
                      NULL::bigint, NULL::bigint, NULL::text, t, false;
END $f$;
