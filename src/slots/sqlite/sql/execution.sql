-- Claims and their ends.

-- name: find_ended_leases
SELECT event_id, claimed_by, tenant, lease_until, exec_ms, exec_window
FROM rate_limit_event_slot WHERE config_id = ?1 AND state = 1 AND lease_until <= ?2
ORDER BY lease_until LIMIT ?3

-- name: end_lease
UPDATE rate_limit_event_slot SET state = 0, lease_until = NULL, exec_ms = NULL,
exec_window = NULL, tenant_class = ?2 WHERE event_id = ?1

-- name: end_one_lease
UPDATE rate_limit_event_slot SET state = 0, lease_until = NULL, exec_ms = NULL,
exec_window = NULL WHERE event_id = ?1

-- name: find_due_of_class
SELECT event_id, tenant, requested_time, window_start, scheduled_time, attempts, payload
FROM rate_limit_event_slot INDEXED BY rate_limit_event_due WHERE config_id = ?1
AND tenant_class = ?2 AND state = 0 AND scheduled_time <= ?3
ORDER BY scheduled_time LIMIT ?4

-- name: claim_event
UPDATE rate_limit_event_slot SET state = 1, attempts = ?2, claimed_at = ?3, claimed_by =
?4,
exec_ms = ?5, exec_window = ?6, lease_until = ?7, finished_at = NULL WHERE event_id = ?1

-- name: finish_event
UPDATE rate_limit_event_slot SET state = ?2, lease_until = NULL, error = ?3,
finished_at = ?4 WHERE event_id = ?1
