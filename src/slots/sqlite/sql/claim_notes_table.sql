-- See postgres/sql/claim_notes.sql.

CREATE TABLE rate_limit_claim_note(
  minute INTEGER NOT NULL,
  config_name TEXT NOT NULL,
  claimed_by TEXT NOT NULL,
  events INTEGER NOT NULL,
  taken_until INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, config_name, claimed_by)
) WITHOUT ROWID;
