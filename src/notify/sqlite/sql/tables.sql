CREATE TABLE rate_limit_store(
  user_id TEXT NOT NULL PRIMARY KEY,
  rate_limit INTEGER NOT NULL,
  time_window INTEGER NOT NULL,
  current_count INTEGER NOT NULL DEFAULT 0,
  last_refresh_time INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE notify_outbox(
  id INTEGER PRIMARY KEY,
  event TEXT NOT NULL
);
CREATE TABLE notify_dead_letter(
  id INTEGER PRIMARY KEY,
  event TEXT NOT NULL,
  error TEXT NOT NULL,
  failed_at INTEGER NOT NULL
);
CREATE TABLE notify_key(
  user_id TEXT NOT NULL,
  key TEXT NOT NULL,
  digest INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  rate_limit INTEGER NOT NULL,
  remaining INTEGER NOT NULL,
  resets_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE INDEX notify_key_age ON notify_key(created_at);
