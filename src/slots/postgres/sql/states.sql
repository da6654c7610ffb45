-- The states of events, as in the enum State; a cancelled event keeps its row and holds no place.
-- Events that were assigned before this step are "external" (5): they were executed by other means,
-- so a dispatcher that is started later must not execute them.
--
-- rate_limit_execution: for each window, how many claims it has granted (granted), how many of them
-- have ended (finished), and how many claims of earlier windows ended in it (spilled), whose
-- executions may lie in it. See execution.h.

ALTER TABLE rate_limit_config
  ADD COLUMN calendar text NOT NULL DEFAULT '',
  ADD COLUMN past smallint NOT NULL DEFAULT 0;

ALTER TABLE rate_limit_window_counter ADD COLUMN archived bigint NOT NULL DEFAULT 0;

ALTER TABLE rate_limit_event_slot
  ADD COLUMN state smallint NOT NULL DEFAULT 5,
  ADD COLUMN attempts int NOT NULL DEFAULT 0,
  ADD COLUMN tenant_class text NOT NULL DEFAULT '',
  ADD COLUMN created_at bigint NOT NULL DEFAULT 0,
  ADD COLUMN claimed_at bigint,
  ADD COLUMN claimed_by text,
  ADD COLUMN lease_until bigint,
  ADD COLUMN exec_ms bigint,
  ADD COLUMN exec_window bigint,
  ADD COLUMN finished_at bigint,
  ADD COLUMN error text,
  ADD COLUMN payload text;
ALTER TABLE rate_limit_event_slot ALTER COLUMN state SET DEFAULT 0;
CREATE INDEX rate_limit_event_due
  ON rate_limit_event_slot(config_id, tenant_class, scheduled_time) WHERE state = 0;
CREATE INDEX rate_limit_event_leased ON rate_limit_event_slot(config_id, lease_until)
  WHERE state = 1;
CREATE INDEX rate_limit_event_ended ON rate_limit_event_slot(config_id, state, finished_at)
  WHERE state IN (2, 3, 4);

-- What happened to an event that its current state does not show.
CREATE TABLE rate_limit_event_change(
  event_id text NOT NULL,
  at bigint NOT NULL,
  what text NOT NULL,
  detail text NOT NULL
);
CREATE INDEX rate_limit_event_change_by_event ON rate_limit_event_change(event_id, at);

CREATE TABLE rate_limit_execution(
  config_id int NOT NULL,
  window_ms bigint NOT NULL,
  window_start bigint NOT NULL,
  granted bigint NOT NULL DEFAULT 0,
  finished bigint NOT NULL DEFAULT 0,
  spilled bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (config_id, window_ms, window_start)
) WITH (fillfactor = 50);
CREATE INDEX rate_limit_execution_open ON rate_limit_execution(config_id, window_start)
  WHERE granted > finished;

CREATE FUNCTION weir_slots_now(p_now bigint) RETURNS bigint LANGUAGE sql AS
  $f$ SELECT CASE WHEN p_now > 0 THEN p_now
                  ELSE (extract(epoch FROM clock_timestamp()) * 1000)::bigint END $f$;

-- The class that a tenant belongs to; '' if the config has no shares.
CREATE FUNCTION weir_slot_class(p_tenants text[], p_tenant text) RETURNS text
LANGUAGE sql IMMUTABLE AS
  $f$ SELECT CASE WHEN cardinality(p_tenants) = 0 THEN '' WHEN p_tenant = ANY (p_tenants)
             THEN p_tenant ELSE '*' END $f$;
