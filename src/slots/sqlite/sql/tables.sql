-- The tables. See postgres/sql/tables.sql; there is only one writer here, so there are no locks.

CREATE TABLE rate_limit_config(
  config_id INTEGER NOT NULL,
  config_name TEXT NOT NULL,
  version INTEGER NOT NULL,
  window_ms INTEGER NOT NULL CHECK (window_ms > 0),
  max_per_window INTEGER NOT NULL CHECK (max_per_window > 0),
  headroom INTEGER NOT NULL,
  fair_windows INTEGER NOT NULL,
  active INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (config_name, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX rate_limit_config_active ON rate_limit_config(config_name) WHERE active;
CREATE INDEX rate_limit_config_by_id ON rate_limit_config(config_id);

CREATE TABLE rate_limit_config_tenant(
  config_name TEXT NOT NULL,
  version INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  weight INTEGER NOT NULL,
  PRIMARY KEY (config_name, version, tenant)
) WITHOUT ROWID;

CREATE TABLE rate_limit_window_counter(
  config_id INTEGER NOT NULL,
  window_ms INTEGER NOT NULL,
  window_start INTEGER NOT NULL,
  slot_count INTEGER NOT NULL DEFAULT 0 CHECK (slot_count >= 0),
  carried INTEGER NOT NULL DEFAULT 0 CHECK (carried >= 0),
  cap INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'OPEN' CHECK (status IN ('OPEN', 'CLOSED')),
  PRIMARY KEY (config_id, window_ms, window_start)
) WITHOUT ROWID;
CREATE INDEX rate_limit_window_status
  ON rate_limit_window_counter(config_id, window_ms, status, window_start);

CREATE TABLE rate_limit_tenant_counter(
  config_id INTEGER NOT NULL,
  window_ms INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  slot_count INTEGER NOT NULL CHECK (slot_count >= 0),
  PRIMARY KEY (config_id, window_ms, tenant, window_start)
) WITHOUT ROWID;

CREATE TABLE rate_limit_event_slot(
  event_id TEXT NOT NULL PRIMARY KEY,
  config_id INTEGER NOT NULL,
  window_ms INTEGER NOT NULL,
  window_start INTEGER NOT NULL,
  scheduled_time INTEGER NOT NULL,
  requested_time INTEGER NOT NULL,
  tenant TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
