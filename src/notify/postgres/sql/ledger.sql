-- The ledger. States are the numbers of MessageState.

-- $1 an id.
-- name: find_message
SELECT event_id, user_id, channel, recipient, state, attempts, last_error, accepted_at,
updated_at, not_before FROM notify_message WHERE event_id = $1

-- $1 a user or '', $2 a state or -1, $3 and $4 the last of the page before, $5 the maximum number.
-- name: list_messages_of_user
SELECT event_id, user_id, channel, recipient, state, attempts, last_error, accepted_at,
updated_at, not_before FROM notify_message WHERE
user_id = $1 AND ($2 < 0 OR state = $2) AND (accepted_at, event_id) < ($3, $4)
ORDER BY accepted_at DESC, event_id DESC LIMIT $5

-- name: list_messages_of_state
SELECT event_id, user_id, channel, recipient, state, attempts, last_error, accepted_at,
updated_at, not_before FROM notify_message WHERE
state = $2 AND (accepted_at, event_id) < ($3, $4) AND $1 = ''
ORDER BY accepted_at DESC, event_id DESC LIMIT $5

-- $1 a user or '', $2 and $3 the last of the page before, $4 the maximum number, $5 1 for only
-- those that were events.
-- name: list_dead
SELECT event_id, user_id, event, error, attempts, failed_at FROM notify_dead_letter WHERE
(failed_at, event_id) > ($2, $3) AND $1 = '' AND ($5 = 0 OR user_id <> '')
ORDER BY failed_at, event_id LIMIT $4

-- name: list_dead_of_user
SELECT event_id, user_id, event, error, attempts, failed_at FROM notify_dead_letter WHERE
user_id = $1 AND (failed_at, event_id) > ($2, $3) ORDER BY failed_at, event_id LIMIT $4

-- $1 an id.
-- name: find_dead
SELECT event_id, user_id, event, error, attempts, failed_at FROM notify_dead_letter WHERE event_id = $1

-- $1 the maximum number to count.
-- name: count_dead
SELECT count(*) FROM (SELECT FROM notify_dead_letter LIMIT $1) counted

-- $1 after this user, $2 the maximum number.
-- name: list_users
SELECT s.user_id, s.rate_limit, s.time_window, s.current_count,
(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint FROM rate_limit_store s
WHERE s.user_id > $1 ORDER BY s.user_id LIMIT $2

-- $1 user, $2 from, $3 to, $4 zone, $5 channels.
-- name: put_preferences
INSERT INTO notify_preference VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id) DO UPDATE
SET quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to, zone = excluded.zone,
opted_out = excluded.opted_out

-- $1 users.
-- name: find_preferences
SELECT user_id, quiet_from, quiet_to, zone, opted_out FROM notify_preference
WHERE user_id = ANY($1)

-- Records how deliveries ended; a sent message stays sent. $1 ids, $2 users, $3 channels,
-- $4 recipients, $5 states, $6 attempts, $7 errors, $8 accepted at, $9 not before, $10 now.
-- name: report
INSERT INTO notify_message AS m(event_id, user_id, channel, recipient, state, attempts,
last_error, accepted_at, updated_at, not_before)
SELECT DISTINCT ON (u.id) u.id, u.usr, u.channel, u.recipient, u.state, u.attempts, u.error,
u.at, $10, u.later FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[],
$6::bigint[], $7::text[], $8::bigint[], $9::bigint[])
u(id, usr, channel, recipient, state, attempts, error, at, later) ORDER BY u.id
ON CONFLICT (event_id) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
last_error = excluded.last_error, updated_at = excluded.updated_at,
not_before = excluded.not_before WHERE m.state <> 2 AND (excluded.state = 2
OR m.state IN (0, 1) OR (m.state = 3 AND excluded.state = 3))

-- $1 ids of messages that were sent.
-- name: forget_dead
DELETE FROM notify_dead_letter WHERE event_id = ANY($1)

-- $1 ids, $2 users, $3 events, $4 errors, $5 attempts, $6 now.
-- name: keep_dead
INSERT INTO notify_dead_letter(event_id, user_id, event, error, attempts, failed_at)
SELECT DISTINCT ON (u.id) u.id, u.usr, u.event, u.error, u.attempts, $6
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[])
u(id, usr, event, error, attempts) WHERE NOT EXISTS (SELECT 1 FROM notify_message m
WHERE m.event_id = u.id AND m.state IN (2, 4)) ORDER BY u.id
ON CONFLICT (event_id) DO UPDATE SET event = excluded.event, error = excluded.error,
attempts = excluded.attempts, failed_at = excluded.failed_at, taken_until = 0

-- $1 ids, $2 events, $3 times.
-- name: keep_delayed
INSERT INTO notify_delayed SELECT DISTINCT ON (u.id) u.id, u.event, u.later
FROM unnest($1::text[], $2::text[], $3::bigint[]) u(id, event, later) ORDER BY u.id
ON CONFLICT (event_id) DO UPDATE SET not_before = excluded.not_before

-- $1 ids. Returns those that were sent or dropped.
-- name: find_settled
SELECT event_id FROM notify_message WHERE event_id = ANY($1) AND state IN (2, 4)

-- $1 now, $2 the maximum number, $3 the end of the lease, $4 the latest time to delay to.
-- name: take_due
UPDATE notify_delayed SET not_before = $3 WHERE event_id IN (
SELECT event_id FROM (SELECT event_id FROM notify_delayed WHERE not_before <= $1
ORDER BY not_before, event_id LIMIT $2 FOR UPDATE SKIP LOCKED) due UNION ALL
SELECT event_id FROM (SELECT event_id FROM notify_delayed WHERE not_before > $4
ORDER BY not_before, event_id LIMIT $2 FOR UPDATE SKIP LOCKED) stray) RETURNING event

-- $1 ids, $2 the end of the lease.
-- name: forget_delayed
DELETE FROM notify_delayed WHERE event_id = ANY($1) AND not_before = $2

-- Claims dead letters for a replay: their messages are queued, and no one else can claim them
-- before $2. $1 ids, $3 now.
-- Letters that were not events are not replayed.
-- name: claim_dead
WITH claimed AS (UPDATE notify_dead_letter SET taken_until = $2 WHERE event_id IN
(SELECT event_id FROM notify_dead_letter WHERE event_id = ANY($1) AND taken_until <= $3
AND user_id <> '' ORDER BY event_id FOR UPDATE) RETURNING event_id, event),
queued AS (UPDATE notify_message m SET state = 0, attempts = 0, updated_at = $3
FROM claimed c WHERE m.event_id = c.event_id AND m.state = 3)
SELECT event_id, event FROM claimed

-- After claimed letters were put into the queue. $1 ids, $2 as above.
-- name: forget_claimed
DELETE FROM notify_dead_letter WHERE event_id = ANY($1) AND taken_until = $2

-- After claimed letters could not be queued. $1 ids, $2 as above.
-- name: return_claimed
WITH letters AS (UPDATE notify_dead_letter SET taken_until = 0
WHERE event_id = ANY($1) AND taken_until = $2 RETURNING event_id, attempts)
UPDATE notify_message m SET state = 3, attempts = l.attempts FROM letters l
WHERE m.event_id = l.event_id AND m.state = 0

-- Returns letters whose claim has expired. $1 now.
-- name: return_expired
WITH letters AS (UPDATE notify_dead_letter SET taken_until = 0
WHERE taken_until > 0 AND taken_until <= $1 RETURNING event_id, attempts)
UPDATE notify_message m SET state = 3, attempts = l.attempts FROM letters l
WHERE m.event_id = l.event_id AND m.state = 0

-- $1 ids, $2 now.
-- name: drop_dead
WITH dropped AS (DELETE FROM notify_dead_letter WHERE event_id IN (SELECT event_id
FROM notify_dead_letter WHERE event_id = ANY($1) AND taken_until <= $2 ORDER BY event_id
FOR UPDATE) RETURNING event_id), states AS (UPDATE notify_message m SET state = 4,
updated_at = $2 FROM dropped d WHERE m.event_id = d.event_id AND m.state = 3)
SELECT event_id FROM dropped
