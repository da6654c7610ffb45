-- No index other than the key's: every charge would have to update it.
CREATE TABLE IF NOT EXISTS weir_limits(
  id       VARBINARY(256) NOT NULL PRIMARY KEY,
  state    LONGBLOB NOT NULL,
  fresh_at BIGINT NOT NULL
    COMMENT 'nanoseconds since 1970; from then on the row may be deleted without changing an answer'
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='Weir: one row per limited key'
