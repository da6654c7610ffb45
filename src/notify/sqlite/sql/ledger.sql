-- States of messages, and users' preferences.

-- name: select_message
SELECT event_id, user_id, channel, recipient, state, attempts, last_error, accepted_at,
updated_at, not_before FROM notify_message WHERE

-- name: select_dead
SELECT event_id, user_id, event, error, attempts, failed_at FROM notify_dead_letter WHERE

-- name: delete_dead
DELETE FROM notify_dead_letter WHERE event_id = ?1

-- After its dead letter was taken out: ?2 is queued, with no attempts yet, or dropped.
-- name: take_out_message
UPDATE notify_message SET state = ?2, last_error = ?3,
attempts = CASE ?2 WHEN 0 THEN 0 ELSE attempts END, updated_at = ?4 WHERE event_id = ?1

-- name: read_preferences
SELECT quiet_from, quiet_to, zone, opted_out FROM notify_preference WHERE user_id = ?1

-- name: list_users
SELECT user_id, rate_limit, time_window, current_count, last_refresh_time
FROM rate_limit_store WHERE user_id > ?1 ORDER BY user_id LIMIT ?2

-- name: put_preferences
INSERT OR REPLACE INTO notify_preference VALUES (?1, ?2, ?3, ?4, ?5)
