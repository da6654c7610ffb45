-- Limits of users and their counts. A row of a channel is named user, 0x1f, channel.

-- Locks the users' rows in a fixed order, which prevents deadlocks. $1: text[].
-- name: lock_rows
SELECT s.user_id, s.rate_limit, s.time_window, s.current_count,
(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid()
FROM rate_limit_store s WHERE s.user_id = ANY($1) ORDER BY s.user_id FOR UPDATE

-- Like lock_rows, but without the lock; a seventh column is 1 if channels of the user have limits.
-- name: read_rows
SELECT s.user_id, s.rate_limit, s.time_window, s.current_count,
(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid(),
(SELECT count(*) FROM (SELECT FROM rate_limit_store c
  WHERE split_part(c.user_id, E'\x1f', 1) = s.user_id AND strpos(c.user_id, E'\x1f') > 0
  LIMIT 1) x)
FROM rate_limit_store s WHERE s.user_id = ANY($1)

-- $1 users, $2 counts, $3 times of the last refresh, $4 the backend that holds the locks: a
-- connection that was re-established holds none and must not write.
-- name: write_rows
UPDATE rate_limit_store s SET current_count = u.n, last_refresh_time = weir_notify_time(u.t)
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) u(id, n, t)
WHERE s.user_id = u.id AND pg_backend_pid() = $4

-- $1 users, $2 counts to add, $3 the windows that the counts belong to.
-- Locks the rows in order first, as lock_rows does; an UPDATE alone locks them in any order.
-- name: add_counts
WITH locked AS MATERIALIZED (SELECT s.user_id FROM rate_limit_store s
  WHERE s.user_id = ANY($1) ORDER BY s.user_id FOR UPDATE)
UPDATE rate_limit_store s SET current_count = s.current_count + u.n
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) u(id, n, t) JOIN locked l
  ON l.user_id = u.id
WHERE s.user_id = u.id AND s.last_refresh_time = weir_notify_time(u.t)

-- $1 users, $2 their last refresh as read, $3 now.
-- name: refresh_rows
WITH locked AS MATERIALIZED (SELECT s.user_id FROM rate_limit_store s
  WHERE s.user_id = ANY($1) ORDER BY s.user_id FOR UPDATE)
UPDATE rate_limit_store s SET current_count = 0, last_refresh_time = weir_notify_time($3)
FROM unnest($1::text[], $2::bigint[]) u(id, t) JOIN locked l ON l.user_id = u.id
WHERE s.user_id = u.id AND s.last_refresh_time = weir_notify_time(u.t)

-- $1 user or ChannelKey, $2 limit, $3 window, $4 now.
-- name: put_row
INSERT INTO rate_limit_store AS s(user_id, rate_limit, time_window, last_refresh_time)
VALUES ($1, $2, $3, weir_notify_time($4)) ON CONFLICT (user_id) DO UPDATE
SET rate_limit = excluded.rate_limit, time_window = excluded.time_window, current_count = 0,
last_refresh_time = excluded.last_refresh_time RETURNING
s.user_id, s.rate_limit, s.time_window, s.current_count,
(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid()

-- Like put_row, but an existing row keeps the start of its window and its count.
-- name: adjust_row
INSERT INTO rate_limit_store AS s(user_id, rate_limit, time_window, last_refresh_time)
VALUES ($1, $2, $3, weir_notify_time($4)) ON CONFLICT (user_id) DO UPDATE
SET rate_limit = excluded.rate_limit, time_window = excluded.time_window RETURNING
s.user_id, s.rate_limit, s.time_window, s.current_count,
(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid()

-- Like put_row, but leaves an existing row as it is.
-- name: ensure_row
INSERT INTO rate_limit_store(user_id, rate_limit, time_window, last_refresh_time)
VALUES ($1, $2, $3, weir_notify_time($4)) ON CONFLICT (user_id) DO NOTHING

-- $1 user. Returns one row if there was one.
-- name: remove_row
DELETE FROM rate_limit_store s WHERE s.user_id = $1 RETURNING s.user_id

-- Settings for one transaction. $1 the longest wait for a lock, $2 the longest pause between
-- statements, both in milliseconds as text.
-- Plans that were made while the table was small must not scan it when it is large.
-- name: bounds
SELECT set_config('lock_timeout', $1, true),
set_config('idle_in_transaction_session_timeout', $2, true),
set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
set_config('enable_mergejoin', 'off', true)
