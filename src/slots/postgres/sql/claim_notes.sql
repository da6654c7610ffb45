-- Claims made directly on the database: one row per caller, config and minute, written in the
-- claim's transaction. A service that uses the database copies the rows to its audit log and
-- deletes them; taken_until reserves them meanwhile.

CREATE TABLE rate_limit_claim_note(
  minute bigint NOT NULL,
  config_name text NOT NULL,
  claimed_by text NOT NULL,
  events bigint NOT NULL,
  taken_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, config_name, claimed_by)
);
