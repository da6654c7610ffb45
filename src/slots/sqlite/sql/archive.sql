-- Events that leave the live table. See postgres/sql/archive.sql.

-- name: config_ids
SELECT DISTINCT config_id FROM rate_limit_config ORDER BY 1

-- name: find_gone
SELECT event_id, window_ms, window_start FROM rate_limit_event_slot
INDEXED BY rate_limit_event_ended WHERE config_id = ?1 AND state = ?2
AND state IN (2, 3, 4) AND finished_at < ?3 ORDER BY finished_at LIMIT ?4

-- name: copy_to_archive
INSERT INTO rate_limit_event_archive SELECT event_id, config_id, window_ms, window_start,
scheduled_time, requested_time, tenant, state, attempts, created_at, claimed_at,
claimed_by, finished_at FROM rate_limit_event_slot WHERE event_id = ?1
ON CONFLICT DO NOTHING

-- name: delete_event
DELETE FROM rate_limit_event_slot WHERE event_id = ?1

-- name: delete_changes
DELETE FROM rate_limit_event_change WHERE event_id = ?1

-- name: count_archived
UPDATE rate_limit_window_counter SET archived = archived + 1
WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3

-- name: drop_archived
DELETE FROM rate_limit_event_archive WHERE event_id IN (SELECT event_id
FROM rate_limit_event_archive WHERE finished_at < ?1 AND scheduled_time < ?1 ORDER BY finished_at LIMIT ?2)

-- name: look_in_archive
SELECT config_id, tenant, requested_time, window_start, scheduled_time, state, attempts,
created_at, claimed_at, claimed_by, finished_at FROM rate_limit_event_archive
WHERE event_id = ?1
