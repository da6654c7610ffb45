-- weir_slots_put_config: a new version waits until calls under the old one have committed, then
-- brings the windows of its size up to date: how much slots of other sizes take up in them, which
-- are full under the new maximum, and how much each tenant has in them. Later calls see all of this
-- or nothing.
--
-- Cancelled events hold no place, archived ones are counted only in their window's row, and an
-- event's class follows its config's tenants.

DROP FUNCTION IF EXISTS weir_slots_put_config(text, bigint, bigint, bigint, bigint, text[], bigint[], bigint);

CREATE OR REPLACE FUNCTION weir_slots_refresh_windows(p_id int, p_size bigint, p_max bigint, p_tenants text[])
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  IF EXISTS (SELECT FROM rate_limit_config WHERE config_id = p_id AND window_ms <> p_size) THEN
    UPDATE rate_limit_window_counter SET carried = 0
    WHERE config_id = p_id AND window_ms = p_size AND carried > 0;
    INSERT INTO rate_limit_window_counter AS w(config_id, window_ms, window_start, carried)
    SELECT p_id, p_size, scheduled_time - scheduled_time % p_size, count(*)
    FROM rate_limit_event_slot WHERE config_id = p_id AND window_ms <> p_size AND state <> 4
    GROUP BY 3
    ON CONFLICT (config_id, window_ms, window_start) DO UPDATE SET carried = excluded.carried;
  END IF;
  UPDATE rate_limit_window_counter w
  SET status = CASE WHEN w.slot_count + w.carried >= p_max THEN 'CLOSED' ELSE 'OPEN' END
  WHERE config_id = p_id AND window_ms = p_size
    AND (w.slot_count + w.carried >= p_max) <> (w.status = 'CLOSED');
  INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start)
  SELECT p_id, p_size, w.window_start + p_size FROM rate_limit_window_counter w
  WHERE w.config_id = p_id AND w.window_ms = p_size AND w.status = 'CLOSED'
  ON CONFLICT DO NOTHING;
  DELETE FROM rate_limit_tenant_counter WHERE config_id = p_id;
  INSERT INTO rate_limit_tenant_counter
  SELECT p_id, p_size, CASE WHEN tenant = ANY (p_tenants) THEN tenant ELSE '*' END, window_start,
         count(*)
  FROM rate_limit_event_slot
  WHERE cardinality(p_tenants) > 0 AND config_id = p_id AND window_ms = p_size
    AND state <> 4
  GROUP BY 3, 4;
  UPDATE rate_limit_event_slot
  SET tenant_class = weir_slot_class(p_tenants, tenant)
  WHERE config_id = p_id AND state = 0 AND tenant_class <> weir_slot_class(p_tenants, tenant);
END $f$;

CREATE FUNCTION weir_slots_put_config(p_name text, p_size bigint, p_max bigint, p_headroom bigint,
                                      p_fair bigint, p_tenants text[], p_weights bigint[],
                                      p_now bigint, p_calendar text, p_past smallint)
RETURNS bigint LANGUAGE plpgsql AS $f$
DECLARE
  id int;
  latest int;
BEGIN
  PERFORM pg_advisory_xact_lock(2003134836, 0);
  PERFORM weir_slots_lock_config(p_name);
  SELECT config_id, version INTO id, latest FROM rate_limit_config
  WHERE config_name = p_name ORDER BY version DESC LIMIT 1;
  IF NOT FOUND THEN
    SELECT coalesce(max(config_id), 0) + 1, 0 INTO id, latest FROM rate_limit_config;
  END IF;
  UPDATE rate_limit_config SET active = false WHERE config_name = p_name AND active;
  INSERT INTO rate_limit_config VALUES (id, p_name, latest + 1, p_size, p_max, p_headroom, p_fair,
                                        p_tenants, p_weights, true, p_now, p_calendar, p_past);
  PERFORM weir_slots_refresh_windows(id, p_size, p_max, p_tenants);
  RETURN latest + 1;
END $f$;

-- The first row has the number of windows and slots; then one row for each window with a fault.
CREATE OR REPLACE FUNCTION weir_slots_verify()
RETURNS TABLE(r_config text, r_start bigint, r_size bigint, r_count bigint, r_slots bigint,
              r_cap bigint, r_what text)
LANGUAGE sql AS $f$
  WITH s AS (
    SELECT config_id, window_ms, window_start, count(*) AS n,
           bool_and(scheduled_time >= requested_time AND scheduled_time >= window_start
                    AND scheduled_time < window_start + window_ms) AS inside
    FROM rate_limit_event_slot WHERE state <> 4 GROUP BY 1, 2, 3),
  both_sides AS (
    SELECT config_id, window_ms, window_start, w.slot_count,
           coalesce(s.n, 0) + coalesce(w.archived, 0) AS n, w.cap, w.status,
           coalesce(s.inside, true) AS inside
    FROM rate_limit_window_counter w FULL JOIN s USING (config_id, window_ms, window_start)),
  judged AS (
    SELECT b.*, CASE
      WHEN b.slot_count IS NULL THEN 'slots without a counter'
      WHEN b.slot_count <> b.n THEN 'the counter differs from the number of slots'
      WHEN b.slot_count > b.cap THEN 'more slots than the maximum'
      WHEN NOT b.inside THEN 'a slot lies outside its window or before its requested time'
      WHEN b.status = 'CLOSED' AND NOT EXISTS (
        SELECT FROM rate_limit_window_counter x WHERE x.config_id = b.config_id
          AND x.window_ms = b.window_ms AND x.window_start = b.window_start + b.window_ms)
        THEN 'a full window without a successor'
      END AS what
    FROM both_sides b)
  SELECT NULL, NULL, NULL, count(*), sum(n)::bigint, NULL, NULL FROM judged
  UNION ALL
  SELECT (SELECT g.config_name FROM rate_limit_config g WHERE g.config_id = j.config_id LIMIT 1),
         j.window_start, j.window_ms, j.slot_count, j.n, j.cap, j.what
  FROM judged j WHERE j.what IS NOT NULL
$f$;
