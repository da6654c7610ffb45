-- The tables. Times are milliseconds since the epoch.
--
-- Two invariants make the search for a place one index lookup, however many windows are full:
--   1. A window that is CLOSED (full) has a successor row.
--   2. Rows are never deleted.
-- So, from a window that has a row, the first OPEN row at or after it is the earliest window with
-- room: everything between is CLOSED. A window without a row is empty, and is itself the answer.
--
-- Locks are taken in this order, which prevents deadlocks: config (advisory, shared; exclusive to
-- change it), rows of windows (SKIP LOCKED, never waiting), the right to create windows of a config
-- (advisory), event ids (the unique index, in sorted order).

CREATE TABLE rate_limit_config(
  config_id int NOT NULL,
  config_name text NOT NULL,
  version int NOT NULL,
  window_ms bigint NOT NULL CHECK (window_ms > 0),
  max_per_window bigint NOT NULL CHECK (max_per_window > 0),
  headroom bigint NOT NULL,
  fair_windows bigint NOT NULL,
  tenants text[] NOT NULL DEFAULT '{}',
  weights bigint[] NOT NULL DEFAULT '{}',
  active boolean NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (config_name, version)
);
CREATE UNIQUE INDEX rate_limit_config_active ON rate_limit_config(config_name) WHERE active;
CREATE INDEX rate_limit_config_by_id ON rate_limit_config(config_id);

-- carried: slots given under another window size of the same config that fall into this window.
-- cap: the maximum under which the latest slot was given.
CREATE TABLE rate_limit_window_counter(
  config_id int NOT NULL,
  window_ms bigint NOT NULL,
  window_start bigint NOT NULL,
  slot_count bigint NOT NULL DEFAULT 0 CHECK (slot_count >= 0),
  carried bigint NOT NULL DEFAULT 0 CHECK (carried >= 0),
  cap bigint NOT NULL DEFAULT 0,
  status text NOT NULL DEFAULT 'OPEN' CHECK (status IN ('OPEN', 'CLOSED')),
  PRIMARY KEY (config_id, window_ms, window_start)
) WITH (fillfactor = 70);
-- Partial, so that no plan uses it to look up a window of any status, which would have to scan it.
CREATE INDEX rate_limit_window_open ON rate_limit_window_counter(config_id, window_ms, window_start)
  WHERE status = 'OPEN';

-- Only for configs with tenants; '*' stands for all tenants that the config does not name.
CREATE TABLE rate_limit_tenant_counter(
  config_id int NOT NULL,
  window_ms bigint NOT NULL,
  tenant text NOT NULL,
  window_start bigint NOT NULL,
  slot_count bigint NOT NULL CHECK (slot_count >= 0),
  PRIMARY KEY (config_id, window_ms, tenant, window_start)
) WITH (fillfactor = 70);

CREATE TABLE rate_limit_event_slot(
  event_id text PRIMARY KEY,
  config_id int NOT NULL,
  window_ms bigint NOT NULL,
  window_start bigint NOT NULL,
  scheduled_time bigint NOT NULL,
  requested_time bigint NOT NULL,
  tenant text
);

-- Advisory locks: 2003134834 the config, 2003134835 creating windows, 2003134836 naming configs.
CREATE FUNCTION weir_slots_lock_shared(p_name text) RETURNS void LANGUAGE sql AS
  $f$ SELECT pg_advisory_xact_lock_shared(2003134834, hashtext(p_name)) $f$;
CREATE FUNCTION weir_slots_lock_config(p_name text) RETURNS void LANGUAGE sql AS
  $f$ SELECT pg_advisory_xact_lock(2003134834, hashtext(p_name)) $f$;
CREATE FUNCTION weir_slots_lock_creation(p_id int) RETURNS void LANGUAGE sql AS
  $f$ SELECT pg_advisory_xact_lock(2003134835, p_id) $f$;
