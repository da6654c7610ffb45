-- Claims that were made on the database itself: a row for each caller, config and minute, written in the transaction of the
-- claim. A service that uses the database copies them to its audit log and deletes them; while it does, they are taken.

CREATE TABLE rate_limit_claim_note(
  minute bigint NOT NULL,
  config_name text NOT NULL,
  claimed_by text NOT NULL,
  events bigint NOT NULL,
  taken_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (minute, config_name, claimed_by)
);
