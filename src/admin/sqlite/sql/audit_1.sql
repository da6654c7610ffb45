CREATE TABLE audit (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  who    TEXT    NOT NULL,
  action TEXT    NOT NULL,
  target TEXT    NOT NULL,
  before TEXT    NOT NULL,
  after  TEXT    NOT NULL,
  undoes INTEGER NOT NULL
);
CREATE INDEX audit_target ON audit (target, id);
