-- Idempotency keys.

-- $1 users, $2 keys (pairwise), $3: keys up to this time have expired.
-- name: find_keys
SELECT k.user_id, k.key, k.digest, k.event_id, k.rate_limit, k.remaining, k.resets_at
FROM unnest($1::text[], $2::text[]) u(id, key)
JOIN notify_key k ON k.user_id = u.id AND k.key = u.key WHERE k.created_at > $3

-- $1 users, $2 keys, $3 digests, $4 event ids, $5 limits, $6 remaining, $7 resets, $8 now,
-- $9 the backend, or 0 for any.
-- name: put_keys
INSERT INTO notify_key SELECT u.*, $8 FROM unnest($1::text[], $2::text[], $3::bigint[],
$4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) u
WHERE $9 IN (0, pg_backend_pid()) ORDER BY 1, 2
ON CONFLICT (user_id, key) DO UPDATE SET digest = excluded.digest,
event_id = excluded.event_id, rate_limit = excluded.rate_limit,
remaining = excluded.remaining, resets_at = excluded.resets_at,
created_at = excluded.created_at

-- $1 the oldest time that counts, $2 the most.
-- name: sweep_keys
DELETE FROM notify_key WHERE ctid IN (SELECT ctid FROM notify_key WHERE created_at <= $1
LIMIT $2 FOR UPDATE SKIP LOCKED)
