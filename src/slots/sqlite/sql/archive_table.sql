-- See postgres/sql/archive.sql.

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
