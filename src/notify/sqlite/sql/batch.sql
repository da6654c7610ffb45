-- Reads and writes of a batch of sends.

-- name: read_limit
SELECT rate_limit, time_window, current_count, last_refresh_time FROM rate_limit_store
WHERE user_id = ?1

-- name: find_key
SELECT digest, event_id, rate_limit, remaining, resets_at FROM notify_key
WHERE user_id = ?1 AND key = ?2 AND created_at > ?3

-- name: put_key
INSERT OR REPLACE INTO notify_key VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: put_event
INSERT INTO notify_outbox(event) VALUES (?1)

-- name: put_message
INSERT INTO notify_message(event_id, user_id, channel, recipient, state, accepted_at,
updated_at) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5) ON CONFLICT (event_id) DO NOTHING

-- name: write_counts
UPDATE rate_limit_store SET current_count = ?2, last_refresh_time = ?3 WHERE user_id = ?1
