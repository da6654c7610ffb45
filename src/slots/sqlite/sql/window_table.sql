-- Counters of windows and of the classes in them.

-- name: used_by_class
SELECT slot_count FROM rate_limit_tenant_counter
WHERE config_id = ?1 AND window_ms = ?2 AND tenant = ?3 AND window_start = ?4

-- name: find_window
SELECT slot_count + carried, status = 'OPEN' FROM rate_limit_window_counter
WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3

-- name: list_open
SELECT w.window_start, w.slot_count + w.carried, EXISTS (
  SELECT 1 FROM rate_limit_window_counter n WHERE n.config_id = ?1 AND n.window_ms = ?2
  AND n.window_start = w.window_start + ?2)
FROM rate_limit_window_counter w INDEXED BY rate_limit_window_status
WHERE w.config_id = ?1 AND w.window_ms = ?2 AND w.status = 'OPEN' AND w.window_start >= ?3
ORDER BY w.window_start LIMIT ?4

-- name: create_window
INSERT INTO rate_limit_window_counter(config_id, window_ms, window_start)
VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING

-- name: take_in_window
UPDATE rate_limit_window_counter SET slot_count = slot_count + ?4, cap = ?5,
status = CASE WHEN slot_count + carried + ?4 >= ?5 THEN 'CLOSED' ELSE 'OPEN' END
WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3
RETURNING status = 'CLOSED'

-- name: take_in_class
INSERT INTO rate_limit_tenant_counter(config_id, window_ms, tenant, window_start,
slot_count)
VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET slot_count = slot_count + ?5

-- name: give_back_window
UPDATE rate_limit_window_counter SET slot_count = slot_count - 1,
status = CASE WHEN slot_count + carried - 1 >= ?4 THEN 'CLOSED' ELSE 'OPEN' END
WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3

-- name: give_back_class
UPDATE rate_limit_tenant_counter SET slot_count = slot_count - 1 WHERE config_id = ?1
AND window_ms = ?2 AND tenant = ?3 AND window_start = ?4 AND slot_count > 0
