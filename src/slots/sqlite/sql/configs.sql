-- Configs and their versions, and what a new version changes in the counters.

-- name: select_config
SELECT config_id, config_name, version, window_ms, max_per_window, headroom, fair_windows,
active, created_at, calendar, past FROM rate_limit_config

-- name: read_tenants
SELECT tenant, weight FROM rate_limit_config_tenant
WHERE config_name = ?1 AND version = ?2 ORDER BY tenant

-- name: insert_tenant
INSERT INTO rate_limit_config_tenant VALUES (?1, ?2, ?3, ?4)

-- name: delete_tenant_counters
DELETE FROM rate_limit_tenant_counter WHERE config_id = ?1

-- name: count_tenants
INSERT INTO rate_limit_tenant_counter
SELECT ?1, ?2, coalesce(t.tenant, '*'), s.window_start, count(*)
FROM rate_limit_event_slot s LEFT JOIN rate_limit_config_tenant t
  ON t.config_name = ?3 AND t.version = ?4 AND t.tenant = s.tenant
WHERE s.config_id = ?1 AND s.window_ms = ?2 AND s.state <> 4 GROUP BY 3, 4

-- name: classify_events
UPDATE rate_limit_event_slot AS s SET tenant_class = CASE WHEN ?4 = 0 THEN '' ELSE
coalesce((SELECT t.tenant FROM rate_limit_config_tenant t WHERE t.config_name = ?2
AND t.version = ?3 AND t.tenant = s.tenant), '*') END WHERE config_id = ?1 AND state = 0

-- name: clear_carried
UPDATE rate_limit_window_counter SET carried = 0
WHERE config_id = ?1 AND window_ms = ?2 AND carried > 0

-- name: has_other_sizes
SELECT 1 FROM rate_limit_config WHERE config_id = ?1 AND window_ms <> ?2 LIMIT 1

-- name: carry_other_sizes
INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start, carried)
SELECT ?1, ?2, scheduled_time - scheduled_time % ?2 AS w, count(*)
FROM rate_limit_event_slot WHERE config_id = ?1 AND window_ms <> ?2 AND state <> 4
GROUP BY w
ON CONFLICT DO UPDATE SET carried = excluded.carried

-- name: close_full_windows
UPDATE rate_limit_window_counter SET status =
CASE WHEN slot_count + carried >= ?3 THEN 'CLOSED' ELSE 'OPEN' END
WHERE config_id = ?1 AND window_ms = ?2

-- name: add_successors
INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start)
SELECT ?1, ?2, window_start + ?2 FROM rate_limit_window_counter
WHERE config_id = ?1 AND window_ms = ?2 AND status = 'CLOSED' ON CONFLICT DO NOTHING

-- name: next_version
SELECT coalesce((SELECT config_id FROM rate_limit_config WHERE config_name = ?1 LIMIT 1),
  (SELECT coalesce(max(config_id), 0) + 1 FROM rate_limit_config)),
(SELECT coalesce(max(version), 0) + 1 FROM rate_limit_config WHERE config_name = ?1)

-- name: name_of
SELECT config_name FROM rate_limit_config WHERE config_id = ?1 LIMIT 1

-- name: insert_config
INSERT INTO rate_limit_config VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10)

-- name: deactivate_config
UPDATE rate_limit_config SET active = 0 WHERE config_name = ?1 AND active
