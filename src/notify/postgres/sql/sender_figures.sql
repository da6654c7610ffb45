-- Figures of senders. Times are the database's, in microseconds, so that no other clock matters.

-- $1 the sender, $2 to $9 its counts in the order of the columns, $10 its lag, $11 0 if it is ending.
-- name: note_sender
INSERT INTO notify_sender AS s VALUES ($1,
CASE WHEN $11 = 0 THEN 0 ELSE (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END,
$2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (sender) DO UPDATE
SET seen_at = excluded.seen_at, delivered = excluded.delivered, dead = excluded.dead,
duplicate = excluded.duplicate, delayed = excluded.delayed, dropped = excluded.dropped,
retries = excluded.retries, timed = excluded.timed, took = excluded.took, lag = excluded.lag

-- Adds senders that have not reported for $1 microseconds to the row '' and deletes their own rows.
-- name: fold_senders
WITH gone AS (DELETE FROM notify_sender WHERE sender <> ''
AND seen_at < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1 RETURNING *)
INSERT INTO notify_sender AS s SELECT '', 0, sum(delivered), sum(dead), sum(duplicate), sum(delayed),
sum(dropped), sum(retries), sum(timed), sum(took), 0 FROM gone HAVING count(*) > 0
ON CONFLICT (sender) DO UPDATE SET delivered = s.delivered + excluded.delivered,
dead = s.dead + excluded.dead, duplicate = s.duplicate + excluded.duplicate,
delayed = s.delayed + excluded.delayed, dropped = s.dropped + excluded.dropped,
retries = s.retries + excluded.retries, timed = s.timed + excluded.timed, took = s.took + excluded.took

-- The sum of all senders; lag and number only of those that reported within $1 microseconds.
-- name: sum_senders
SELECT coalesce(sum(delivered), 0)::bigint, coalesce(sum(dead), 0)::bigint,
coalesce(sum(duplicate), 0)::bigint, coalesce(sum(delayed), 0)::bigint,
coalesce(sum(dropped), 0)::bigint, coalesce(sum(retries), 0)::bigint,
coalesce(sum(timed), 0)::bigint, coalesce(sum(took), 0)::bigint,
coalesce(sum(lag) FILTER (WHERE live), 0)::bigint, count(*) FILTER (WHERE live)
FROM (SELECT *, seen_at > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1 AS live
FROM notify_sender) s
