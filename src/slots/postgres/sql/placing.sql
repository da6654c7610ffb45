-- Lookups are functions of their own, or one statement per row: a join planned while the tables
-- were small would read one side completely.
--
-- weir_slot_create: adds rows for windows that have none. The holder of the creation lock sees
-- every row that was created before, so nothing can conflict; ON CONFLICT would wait for
-- transactions that update such rows.
--
-- weir_slot_take: adds to counters of windows whose rows this transaction has locked, closes the
-- full ones and keeps invariant 1 (tables.sql).

CREATE FUNCTION weir_slot_has_row(p_id int, p_size bigint, p_window bigint) RETURNS boolean
LANGUAGE plpgsql AS $f$
BEGIN
  PERFORM FROM rate_limit_window_counter c
  WHERE c.config_id = p_id AND c.window_ms = p_size AND c.window_start = p_window;
  RETURN FOUND;
END $f$;

CREATE FUNCTION weir_slot_used_by(p_id int, p_size bigint, p_class text, p_window bigint)
RETURNS bigint LANGUAGE plpgsql AS $f$
BEGIN
  RETURN coalesce((SELECT t.slot_count FROM rate_limit_tenant_counter t
                   WHERE t.config_id = p_id AND t.window_ms = p_size AND t.tenant = p_class
                     AND t.window_start = p_window), 0);
END $f$;

CREATE FUNCTION weir_slot_create(p_id int, p_size bigint, p_window bigint[])
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  PERFORM weir_slots_lock_creation(p_id);
  INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start)
  SELECT p_id, p_size, u.w FROM unnest(p_window) u(w)
  WHERE NOT weir_slot_has_row(p_id, p_size, u.w);
END $f$;

CREATE FUNCTION weir_slot_take(p_id int, p_size bigint, p_max bigint, p_class text,
                               p_window bigint[], p_taken bigint[])
RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  k int;
  now_full boolean;
  missing bigint[] := '{}';
BEGIN
  FOR k IN 1..cardinality(p_window) LOOP
    CONTINUE WHEN p_taken[k] = 0;
    UPDATE rate_limit_window_counter c
    SET slot_count = c.slot_count + p_taken[k], cap = p_max,
        status = CASE WHEN c.slot_count + c.carried + p_taken[k] >= p_max THEN 'CLOSED'
                      ELSE 'OPEN' END
    WHERE c.config_id = p_id AND c.window_ms = p_size AND c.window_start = p_window[k]
    RETURNING c.status = 'CLOSED' INTO STRICT now_full;
    IF now_full AND NOT weir_slot_has_row(p_id, p_size, p_window[k] + p_size) THEN
      missing := missing || (p_window[k] + p_size);
    END IF;
  END LOOP;
  IF p_class IS NOT NULL THEN
    INSERT INTO rate_limit_tenant_counter AS t
    SELECT p_id, p_size, p_class, u.w, u.n FROM unnest(p_window, p_taken) u(w, n) WHERE u.n > 0
    ON CONFLICT (config_id, window_ms, tenant, window_start)
    DO UPDATE SET slot_count = t.slot_count + excluded.slot_count;
  END IF;
  IF missing <> '{}' THEN
    PERFORM weir_slot_create(p_id, p_size, missing);
  END IF;
END $f$;
