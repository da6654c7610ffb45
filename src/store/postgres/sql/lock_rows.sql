-- Locked in order of the key. The time is read as each row comes, so the latest is later than the
-- moment when the last lock was had. It comes once more at the end, should there be no rows.
WITH locked AS MATERIALIZED (
  SELECT key, state FROM weir_limits WHERE key = ANY($1::bytea[]) ORDER BY key FOR UPDATE)
SELECT key, state, clock_timestamp() FROM locked
UNION ALL SELECT NULL, NULL, clock_timestamp()
