-- One event: reading and changing it.

-- name: select_event
SELECT event_id, (SELECT config_name FROM rate_limit_config c WHERE c.config_id = s.config_id
LIMIT 1), tenant, requested_time, window_start, scheduled_time, state, attempts, created_at,
claimed_at, lease_until, finished_at, claimed_by, error, payload FROM rate_limit_event_slot
s

-- name: read_history
SELECT at, what, detail FROM rate_limit_event_change WHERE event_id = ?1
ORDER BY at DESC, rowid DESC LIMIT 100

-- name: settle_event
UPDATE rate_limit_event_slot SET config_id = ?2, window_ms = ?3, window_start = ?4,
scheduled_time = ?5, requested_time = ?6, tenant_class = ?7, state = 0, lease_until = NULL,
claimed_at = NULL, exec_ms = NULL, exec_window = NULL, finished_at = NULL
WHERE event_id = ?1

-- name: note_change
INSERT INTO rate_limit_event_change VALUES (?1, ?2, ?3, ?4)

-- name: cancel_event
UPDATE rate_limit_event_slot SET state = 4, finished_at = ?2 WHERE event_id = ?1

-- name: return_event
UPDATE rate_limit_event_slot SET state = 0, lease_until = NULL, claimed_at = NULL,
exec_ms = NULL, exec_window = NULL, tenant_class = ?2 WHERE event_id = ?1

-- name: note_failure
UPDATE rate_limit_event_slot SET error = ?2, failures = failures + ?3 WHERE event_id = ?1

-- name: forget_failures
UPDATE rate_limit_event_slot SET failures = 0 WHERE event_id = ?1

-- Appended to select_event. Each class is a range of the index of due events.
-- name: where_due
WHERE state = 0 AND config_id = (SELECT config_id FROM rate_limit_config
WHERE config_name = ?1 LIMIT 1) AND tenant_class IN (SELECT '' UNION SELECT tenant
FROM rate_limit_config_tenant WHERE config_name = ?1) AND scheduled_time <= ?2
AND scheduled_time >= ?3 AND (scheduled_time, event_id) > (?3, ?4)
ORDER BY scheduled_time, event_id LIMIT ?5

-- Appended to select_event and a condition on the state as a number, which the partial indexes
-- need.
-- name: and_of_config
AND config_id = (SELECT config_id FROM rate_limit_config
WHERE config_name = ?1 LIMIT 1) AND scheduled_time <= ?2
AND (scheduled_time, event_id) > (?3, ?4) ORDER BY scheduled_time, event_id LIMIT ?5
