-- An empty row need not survive a crash, so its commit does not wait for the disk. It is kept for
-- 10 seconds from $2 (null: now), so that it is not swept before the transaction that needs it.
INSERT INTO weir_limits(key, fresh_at)
SELECT k, coalesce($2::bigint, (extract(epoch FROM now()) * 1000000)::bigint * 1000) + 10000000000
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quick,
              unnest($1::bytea[]) AS k
ON CONFLICT DO NOTHING
