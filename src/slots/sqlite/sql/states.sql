-- The states of events; see postgres/sql/states.sql for the meaning of each column.

ALTER TABLE rate_limit_config ADD COLUMN calendar TEXT NOT NULL DEFAULT '';
ALTER TABLE rate_limit_config ADD COLUMN past INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rate_limit_window_counter ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;

ALTER TABLE rate_limit_event_slot ADD COLUMN state INTEGER NOT NULL DEFAULT 5;
ALTER TABLE rate_limit_event_slot ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rate_limit_event_slot ADD COLUMN tenant_class TEXT NOT NULL DEFAULT '';
ALTER TABLE rate_limit_event_slot ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rate_limit_event_slot ADD COLUMN claimed_at INTEGER;
ALTER TABLE rate_limit_event_slot ADD COLUMN claimed_by TEXT;
ALTER TABLE rate_limit_event_slot ADD COLUMN lease_until INTEGER;
ALTER TABLE rate_limit_event_slot ADD COLUMN exec_ms INTEGER;
ALTER TABLE rate_limit_event_slot ADD COLUMN exec_window INTEGER;
ALTER TABLE rate_limit_event_slot ADD COLUMN finished_at INTEGER;
ALTER TABLE rate_limit_event_slot ADD COLUMN error TEXT;
ALTER TABLE rate_limit_event_slot ADD COLUMN payload TEXT;
CREATE INDEX rate_limit_event_due
  ON rate_limit_event_slot(config_id, tenant_class, scheduled_time) WHERE state = 0;
CREATE INDEX rate_limit_event_leased ON rate_limit_event_slot(config_id, lease_until)
  WHERE state = 1;
CREATE INDEX rate_limit_event_ended ON rate_limit_event_slot(config_id, state, finished_at)
  WHERE state IN (2, 3, 4);

CREATE TABLE rate_limit_event_change(
  event_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  what TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX rate_limit_event_change_by_event ON rate_limit_event_change(event_id, at);

CREATE TABLE rate_limit_execution(
  config_id INTEGER NOT NULL,
  window_ms INTEGER NOT NULL,
  window_start INTEGER NOT NULL,
  granted INTEGER NOT NULL DEFAULT 0,
  finished INTEGER NOT NULL DEFAULT 0 CHECK (finished <= granted),
  spilled INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (config_id, window_ms, window_start)
) WITHOUT ROWID;
CREATE INDEX rate_limit_execution_open ON rate_limit_execution(config_id, window_start)
  WHERE granted > finished;
