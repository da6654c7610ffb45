-- Times are `timestamp` (UTC) in the table of limits, microseconds since the epoch elsewhere.

CREATE TABLE rate_limit_store(
  user_id text PRIMARY KEY,
  rate_limit int NOT NULL,
  time_window int NOT NULL,
  current_count int NOT NULL DEFAULT 0,
  last_refresh_time timestamp NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE notify_key(
  user_id text NOT NULL,
  key text NOT NULL,
  digest bigint NOT NULL,
  event_id text NOT NULL,
  rate_limit bigint NOT NULL,
  remaining bigint NOT NULL,
  resets_at bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (user_id, key)
);
CREATE INDEX notify_key_age ON notify_key(created_at);
CREATE FUNCTION weir_notify_time(p_micros bigint) RETURNS timestamp LANGUAGE sql IMMUTABLE AS
  $f$ SELECT timestamp 'epoch' + p_micros * interval '1 microsecond' $f$;
