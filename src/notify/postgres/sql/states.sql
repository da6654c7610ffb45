-- States of messages, and users' preferences.

CREATE TABLE notify_message(
  event_id text PRIMARY KEY,
  user_id text NOT NULL,
  channel text NOT NULL,
  recipient text NOT NULL,
  state smallint NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  last_error text NOT NULL DEFAULT '',
  accepted_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  not_before bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX notify_message_user ON notify_message(user_id, accepted_at, event_id);
CREATE INDEX notify_message_state ON notify_message(state, accepted_at, event_id);
CREATE TABLE notify_dead_letter(
  event_id text PRIMARY KEY,
  user_id text NOT NULL,
  event bytea NOT NULL,
  error text NOT NULL,
  attempts int NOT NULL,
  failed_at bigint NOT NULL,
  taken_until bigint NOT NULL DEFAULT 0
);
CREATE INDEX notify_dead_letter_user ON notify_dead_letter(user_id, failed_at, event_id);
CREATE INDEX notify_dead_letter_time ON notify_dead_letter(failed_at, event_id);
CREATE INDEX notify_dead_letter_taken ON notify_dead_letter(taken_until) WHERE taken_until > 0;
CREATE TABLE notify_delayed(
  event_id text PRIMARY KEY,
  event text NOT NULL,
  not_before bigint NOT NULL
);
CREATE INDEX notify_delayed_due ON notify_delayed(not_before, event_id);
CREATE TABLE notify_preference(
  user_id text PRIMARY KEY,
  quiet_from int NOT NULL,
  quiet_to int NOT NULL,
  zone text NOT NULL,
  opted_out text NOT NULL
);
CREATE INDEX rate_limit_store_channels ON rate_limit_store(split_part(user_id, E'\x1f', 1))
  WHERE strpos(user_id, E'\x1f') > 0;
