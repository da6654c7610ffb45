-- Times are microseconds since the epoch. An event stays in the outbox until it is delivered; it
-- moves to notify_delayed during quiet hours, and to the dead letters when it cannot be
-- delivered. Its state in notify_message changes in the same transaction.

CREATE TABLE notify_message(
  event_id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  recipient TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT NOT NULL DEFAULT '',
  accepted_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX notify_message_user ON notify_message(user_id, accepted_at);
CREATE INDEX notify_message_state ON notify_message(state, accepted_at);
ALTER TABLE notify_dead_letter ADD COLUMN event_id TEXT NOT NULL DEFAULT '';
ALTER TABLE notify_dead_letter ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE notify_dead_letter ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
UPDATE notify_dead_letter SET
  event_id = coalesce(CASE WHEN json_valid(event) THEN json_extract(event, '$.id') END,
                      'dead-' || id),
  user_id = coalesce(CASE WHEN json_valid(event) THEN json_extract(event, '$.userId') END, '');
CREATE INDEX notify_dead_letter_event ON notify_dead_letter(event_id);
CREATE INDEX notify_dead_letter_user ON notify_dead_letter(user_id, failed_at);
CREATE INDEX notify_dead_letter_time ON notify_dead_letter(failed_at, event_id);
CREATE TABLE notify_delayed(
  id INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  event TEXT NOT NULL,
  not_before INTEGER NOT NULL
);
CREATE INDEX notify_delayed_due ON notify_delayed(not_before, id);
CREATE TABLE notify_preference(
  user_id TEXT NOT NULL PRIMARY KEY,
  quiet_from INTEGER NOT NULL,
  quiet_to INTEGER NOT NULL,
  zone TEXT NOT NULL,
  opted_out TEXT NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO notify_message(event_id, user_id, channel, recipient, state, last_error,
                                     accepted_at, updated_at)
  SELECT event_id, user_id, 'sms', '', 3, error,
         coalesce(CAST(strftime('%s', json_extract(event, '$.timestamp')) AS INTEGER) * 1000000,
                  failed_at), failed_at
  FROM notify_dead_letter WHERE user_id <> '';
INSERT OR IGNORE INTO notify_message(event_id, user_id, channel, recipient, state, accepted_at,
                                     updated_at)
  SELECT json_extract(event, '$.id'), json_extract(event, '$.userId'), 'sms', '', 0,
         coalesce(CAST(strftime('%s', json_extract(event, '$.timestamp')) AS INTEGER), 0) * 1000000,
         coalesce(CAST(strftime('%s', json_extract(event, '$.timestamp')) AS INTEGER), 0) * 1000000
  FROM notify_outbox WHERE json_valid(event);
