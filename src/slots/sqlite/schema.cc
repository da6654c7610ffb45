#include "slots/sqlite/schema.h"

namespace weir::slots::sqlite {

std::span<const char* const> Migrations() noexcept {
  static const char* const steps[] = {R"sql(
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
)sql",
                                      // What became of an event; see postgres/sql/states.sql for
                                      // the meaning of each column.
                                      R"sql(
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
)sql",
                                      // See postgres/sql/archive.sql.
                                      R"sql(
CREATE TABLE rate_limit_event_archive(
  event_id TEXT NOT NULL PRIMARY KEY,
  config_id INTEGER NOT NULL,
  window_ms INTEGER NOT NULL,
  window_start INTEGER NOT NULL,
  scheduled_time INTEGER NOT NULL,
  requested_time INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  claimed_at INTEGER,
  claimed_by TEXT,
  finished_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX rate_limit_event_archive_by_end ON rate_limit_event_archive(finished_at);
)sql"};
  return steps;
}

}  // namespace weir::slots::sqlite
