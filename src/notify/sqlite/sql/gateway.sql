-- Limits of users, and deleting old rows.

-- name: count_outbox
SELECT (SELECT count(*) FROM notify_outbox) + (SELECT count(*) FROM notify_delayed)

-- name: remove_limit
DELETE FROM rate_limit_store WHERE user_id = ?1

-- name: sweep_keys
DELETE FROM notify_key WHERE (user_id, key) IN (SELECT user_id, key FROM notify_key
WHERE created_at <= ?1 LIMIT ?2)

-- name: sweep_messages
DELETE FROM notify_message WHERE event_id IN (SELECT event_id FROM notify_message
WHERE state IN (2, 4) AND accepted_at <= ?1 LIMIT ?2)

-- name: put_limit
INSERT OR REPLACE INTO rate_limit_store(user_id, rate_limit, time_window, current_count, last_refresh_time)
VALUES (?1, ?2, ?3, 0, ?4)

-- Like put_limit, but an existing row keeps the start of its window and its count.
-- name: adjust_limit
INSERT INTO rate_limit_store(user_id, rate_limit, time_window, current_count, last_refresh_time)
VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT(user_id) DO UPDATE
SET rate_limit = excluded.rate_limit, time_window = excluded.time_window

-- name: ensure_limit
INSERT OR IGNORE INTO rate_limit_store(user_id, rate_limit, time_window, current_count, last_refresh_time)
VALUES (?1, ?2, ?3, 0, ?4)
