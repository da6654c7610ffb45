-- Locks the rows in key order. The time is read with each row, so the latest time is after the last
-- lock was taken. It is returned once more at the end in case there are no rows.
WITH locked AS MATERIALIZED (
  SELECT key, state FROM weir_limits WHERE key = ANY($1::bytea[]) ORDER BY key FOR UPDATE)
SELECT key, state, clock_timestamp() FROM locked
UNION ALL SELECT NULL, NULL, clock_timestamp()
