-- Accepting and deleting messages.

-- Inserts messages as accepted, unless the sender has already reported them. $1 ids, $2 users, $3
-- channels, $4 recipients, $5 times, $6 the backend, or 0 for any.
-- Sorted like the sender's reports, so that the two cannot deadlock.
-- name: put_messages
INSERT INTO notify_message(event_id, user_id, channel, recipient, state, accepted_at,
updated_at) SELECT u.id, u.usr, u.channel, u.recipient, 0, u.at, u.at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
u(id, usr, channel, recipient, at) WHERE $6 IN (0, pg_backend_pid()) ORDER BY 1
ON CONFLICT (event_id) DO NOTHING

-- $1 the oldest time that is kept, $2 the most. What is still queued then was not reported by any sender; dead letters are kept.
-- name: sweep_messages
DELETE FROM notify_message WHERE ctid IN (SELECT ctid FROM notify_message
WHERE state IN (0, 1, 2, 4) AND accepted_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
