-- Used after a backup was restored. See postgres/sql/restored.sql.

-- name: newest_change
SELECT max(coalesce((SELECT max(max(created_at, coalesce(claimed_at, 0), coalesce(finished_at, 0)))
                     FROM rate_limit_event_slot), 0),
           coalesce((SELECT max(at) FROM rate_limit_event_change), 0))

-- name: note_from_backup
INSERT INTO rate_limit_event_change SELECT event_id, ?2, ?3, '' FROM rate_limit_event_slot
WHERE state IN (0, 4) AND scheduled_time <= ?1

-- name: mark_from_backup
UPDATE rate_limit_event_slot SET attempts = attempts + 1
WHERE state IN (0, 4) AND scheduled_time <= ?1
