-- Events that wait to be executed.

-- name: count_due
SELECT count(*), min(scheduled_time) FROM (SELECT scheduled_time
FROM rate_limit_event_slot INDEXED BY rate_limit_event_due WHERE config_id = ?1
AND tenant_class = ?2 AND state = 0 AND scheduled_time <= ?3
ORDER BY scheduled_time LIMIT ?4)

-- name: count_soon
SELECT count(*) FROM (SELECT 1 FROM rate_limit_event_slot INDEXED BY rate_limit_event_due
WHERE config_id = ?1 AND tenant_class = ?2 AND state = 0 AND scheduled_time > ?3
AND scheduled_time < ?4 LIMIT ?5)

-- name: count_later
SELECT coalesce(sum(slot_count), 0) FROM rate_limit_window_counter WHERE config_id = ?1
AND window_ms IN (SELECT window_ms FROM rate_limit_config WHERE config_id = ?1)
AND window_start > ?2

-- name: count_claimed
SELECT coalesce(sum(granted - finished), 0) FROM rate_limit_execution
WHERE config_id = ?1 AND granted > finished

-- name: read_granted
SELECT granted FROM rate_limit_execution WHERE config_id = ?1 AND window_ms = ?2
AND window_start = ?3

-- name: count_failed
SELECT count(*) FROM (SELECT 1 FROM rate_limit_event_slot WHERE config_id = ?1
AND state = 3 LIMIT ?2)

-- name: has_executed
SELECT EXISTS (SELECT 1 FROM rate_limit_execution WHERE config_id = ?1)

-- name: config_names
SELECT DISTINCT config_name FROM rate_limit_config ORDER BY config_name
