-- No index other than the key's: an update then stays in its page (HOT), which the fill factor
-- leaves room for. States are small and change with every charge, so they are neither compressed
-- nor moved out while they fit.
CREATE TABLE weir_limits(
  key      bytea  NOT NULL PRIMARY KEY,
  state    bytea  NOT NULL DEFAULT '',
  fresh_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE weir_limits ALTER COLUMN state SET STORAGE EXTERNAL;
COMMENT ON TABLE weir_limits IS 'Weir: one row per limited key';
COMMENT ON COLUMN weir_limits.fresh_at IS
  'nanoseconds since 1970; from then on the row may be deleted without changing an answer';
