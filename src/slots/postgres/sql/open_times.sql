-- Claiming under calendars. weir_slots_assign is in answering.sql, weir_slot_end_claim in
-- ending.sql.
--
-- p_version is the version of the config from which p_from and p_until were computed; 0 is correct
-- for a config without a calendar. On a mismatch nothing is done and WS009 is raised: read the
-- config and call again.

DROP FUNCTION IF EXISTS weir_slots_assign(text, text[], bigint[], bigint[], text[], bigint[], text[], int);
DROP FUNCTION IF EXISTS weir_slot_move(text, text, bigint, bigint, bigint, int, int[], int, text, text);
DROP FUNCTION IF EXISTS weir_slots_retry(text, int, text, bigint, bigint, int, bigint, bigint);

-- Nothing is executed while the calendar is closed, nor claimed ahead beyond the cut-off. The clock
-- is read after the lock, so that a claim that waited for the lock does not take a window that has
-- passed.
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
