-- What each sender has done, as it reports every few seconds; the row '' is the sum of senders that
-- no longer exist.

CREATE TABLE notify_sender(
  sender text PRIMARY KEY,
  seen_at bigint NOT NULL,
  delivered bigint NOT NULL,
  dead bigint NOT NULL,
  duplicate bigint NOT NULL,
  delayed bigint NOT NULL,
  dropped bigint NOT NULL,
  retries bigint NOT NULL,
  timed bigint NOT NULL,
  took bigint NOT NULL,
  lag bigint NOT NULL
) WITH (fillfactor = 50);
