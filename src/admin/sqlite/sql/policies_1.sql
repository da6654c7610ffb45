CREATE TABLE policy (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  policy_key     TEXT    NOT NULL UNIQUE,
  type           TEXT    NOT NULL,
  capacity       INTEGER NOT NULL,
  refill_rate    INTEGER NOT NULL,
  window_seconds INTEGER NOT NULL,
  buckets        INTEGER NOT NULL,
  domain         TEXT    NOT NULL,
  has_match      INTEGER NOT NULL,
  shadow         INTEGER NOT NULL,
  unlimited      INTEGER NOT NULL,
  on_store_error TEXT    NOT NULL,
  cost           INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL
);
CREATE TABLE policy_match (
  policy_id INTEGER NOT NULL REFERENCES policy (id) ON DELETE CASCADE,
  position  INTEGER NOT NULL,
  name      TEXT    NOT NULL,
  value     TEXT    NOT NULL,
  PRIMARY KEY (policy_id, position)
) WITHOUT ROWID;
CREATE TABLE policy_version (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  policy_key TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  who        TEXT    NOT NULL,
  action     TEXT    NOT NULL,
  before     TEXT    NOT NULL,
  after      TEXT    NOT NULL
);
CREATE INDEX policy_version_key ON policy_version (policy_key, id);
