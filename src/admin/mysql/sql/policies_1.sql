-- Text is stored as bytes, so that no collation treats two keys as equal.
CREATE TABLE IF NOT EXISTS weir_policy_state(
  one         SMALLINT NOT NULL PRIMARY KEY,
  changes     BIGINT NOT NULL,
  last_policy BIGINT NOT NULL,
  last_entry  BIGINT NOT NULL
) ENGINE=InnoDB COMMENT='Weir: one row; nodes read all policies anew when changes has moved';
INSERT IGNORE INTO weir_policy_state VALUES (1, 0, 0, 0);
CREATE TABLE IF NOT EXISTS weir_policy(
  id             BIGINT NOT NULL PRIMARY KEY,
  policy_key     VARBINARY(256) NOT NULL UNIQUE,
  type           VARBINARY(32)  NOT NULL,
  capacity       BIGINT NOT NULL,
  refill_rate    BIGINT NOT NULL,
  window_seconds BIGINT NOT NULL,
  buckets        BIGINT NOT NULL,
  domain         VARBINARY(256) NOT NULL,
  has_match      SMALLINT NOT NULL,
  shadow         SMALLINT NOT NULL,
  unlimited      SMALLINT NOT NULL,
  on_store_error VARBINARY(32) NOT NULL,
  cost           BIGINT NOT NULL,
  version        BIGINT NOT NULL,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  expires_at     BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC
  COMMENT='Weir: policies made through the admin API; change them there';
CREATE TABLE IF NOT EXISTS weir_policy_match(
  policy_id BIGINT NOT NULL,
  position  INT NOT NULL,
  name      VARBINARY(256)  NOT NULL,
  value     VARBINARY(1100) NOT NULL,
  PRIMARY KEY (policy_id, position)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='Weir: what the policies match';
CREATE TABLE IF NOT EXISTS weir_audit(
  id           BIGINT NOT NULL PRIMARY KEY,
  at           BIGINT NOT NULL,
  who          VARBINARY(1000) NOT NULL,
  action       VARBINARY(256)  NOT NULL,
  target       VARBINARY(1000) NOT NULL,
  state_before LONGBLOB NOT NULL,
  state_after  LONGBLOB NOT NULL,
  undoes       BIGINT NOT NULL,
  KEY weir_audit_target (target, id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='Weir: every change through the admin API'
