-- $1: the key to continue after, $2: how many rows to look at, $3: the time less a grace period
-- (null: the server's time less $4). Rows in use are left for the next round. Returns the last key
-- looked at, the number of rows looked at, and the number deleted.
WITH looked AS MATERIALIZED (
  SELECT key FROM weir_limits WHERE key > $1::bytea ORDER BY key LIMIT $2::bigint),
stale AS MATERIALIZED (
  SELECT l.key FROM weir_limits AS l JOIN looked USING (key)
  WHERE l.fresh_at <= coalesce($3::bigint,
                               (extract(epoch FROM now()) * 1000000)::bigint * 1000 - $4::bigint)
  ORDER BY l.key FOR UPDATE OF l SKIP LOCKED),
gone AS (DELETE FROM weir_limits AS l USING stale WHERE l.key = stale.key RETURNING 1)
SELECT (SELECT key FROM looked ORDER BY key DESC LIMIT 1), (SELECT count(*) FROM looked),
       (SELECT count(*) FROM gone)
