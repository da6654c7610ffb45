-- Old events that have ended leave the live table in small batches: first to
-- rate_limit_event_archive, which keeps what is needed to answer a repeated request for the same
-- id, and later they are deleted from there. Window counters keep the number of events that have
-- left (archived), so that the sums still match. Payloads and histories are not kept.
--
-- Only done and cancelled events leave. Archiving waits for no one: rows that another transaction
-- has locked are skipped.

CREATE TABLE rate_limit_event_archive(
  event_id text PRIMARY KEY,
  config_id int NOT NULL,
  window_ms bigint NOT NULL,
  window_start bigint NOT NULL,
  scheduled_time bigint NOT NULL,
  requested_time bigint NOT NULL,
  tenant text,
  state smallint NOT NULL,
  attempts int NOT NULL,
  created_at bigint NOT NULL,
  claimed_at bigint,
  claimed_by text,
  finished_at bigint NOT NULL
);
CREATE INDEX rate_limit_event_archive_by_end ON rate_limit_event_archive(finished_at);

CREATE FUNCTION weir_slots_archive(p_before bigint, p_limit int) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $f$
DECLARE
  moved bigint := 0;
  n bigint;
  id int;
  ended int;
  ids int[]; sizes bigint[]; windows bigint[]; counts bigint[];
BEGIN
  -- One at a time; the next call does it otherwise.
  IF NOT pg_try_advisory_xact_lock(2003134838, 0) THEN RETURN 0; END IF;
  FOR id IN SELECT DISTINCT g.config_id FROM rate_limit_config g ORDER BY 1 LOOP
    FOREACH ended IN ARRAY ARRAY[2, 4] LOOP
      WITH gone AS (
        DELETE FROM rate_limit_event_slot e USING (
          SELECT x.event_id FROM rate_limit_event_slot x
          WHERE x.config_id = id AND x.state = ended AND x.state IN (2, 3, 4)
            AND x.finished_at < p_before
          ORDER BY x.finished_at LIMIT p_limit - moved FOR UPDATE SKIP LOCKED) old
        WHERE e.event_id = old.event_id
        RETURNING e.*),
      kept AS (
        INSERT INTO rate_limit_event_archive
        SELECT g.event_id, g.config_id, g.window_ms, g.window_start, g.scheduled_time,
               g.requested_time, g.tenant, g.state, g.attempts, g.created_at, g.claimed_at,
               g.claimed_by, g.finished_at FROM gone g
        ON CONFLICT (event_id) DO NOTHING),
      history AS (
        DELETE FROM rate_limit_event_change h USING gone g WHERE h.event_id = g.event_id)
      SELECT sum(w.n), array_agg(w.window_ms), array_agg(w.window_start), array_agg(w.n)
      INTO n, sizes, windows, counts
      FROM (SELECT g.window_ms, g.window_start, count(*) AS n FROM gone g
            GROUP BY 1, 2 ORDER BY 1, 2) w;
      CONTINUE WHEN n IS NULL;
      moved := moved + n;
      IF ended = 2 THEN  -- a cancelled event holds no place
        UPDATE rate_limit_window_counter w SET archived = w.archived + u.n
        FROM unnest(sizes, windows, counts) u(s, w, n)
        WHERE w.config_id = id AND w.window_ms = u.s AND w.window_start = u.w;
      END IF;
      IF moved >= p_limit THEN RETURN moved; END IF;
    END LOOP;
  END LOOP;
  RETURN moved;
END $f$;
