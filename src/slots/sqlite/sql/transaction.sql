-- Places in windows.

-- name: insert_event
INSERT INTO rate_limit_event_slot(event_id, config_id, window_ms, window_start,
scheduled_time, requested_time, tenant, state, tenant_class, created_at, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10)

-- name: uncarry
UPDATE rate_limit_window_counter SET carried = carried - 1,
status = CASE WHEN slot_count + carried - 1 >= ?4 THEN 'CLOSED' ELSE 'OPEN' END
WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3 AND carried > 0

-- name: load_slot
SELECT config_id, window_ms, window_start, scheduled_time, requested_time, tenant, state,
attempts, claimed_at, exec_ms, exec_window, failures, lease_until, claimed_by, payload
FROM rate_limit_event_slot WHERE event_id = ?1
