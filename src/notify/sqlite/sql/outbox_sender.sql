-- Delivering the events of the outbox.

-- name: count_dead
SELECT count(*) FROM notify_dead_letter

-- name: keep_dead
INSERT INTO notify_dead_letter(event, error, failed_at, event_id, user_id, attempts)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: keep_delayed
INSERT INTO notify_delayed(event_id, event, not_before) VALUES (?1, ?2, ?3)

-- name: set_end
UPDATE notify_message SET state = ?2, attempts = ?3, last_error = ?4, updated_at = ?5,
not_before = ?6 WHERE event_id = ?1

-- name: read_outbox
SELECT id, event FROM notify_outbox ORDER BY id LIMIT ?1

-- name: delete_event
DELETE FROM notify_outbox WHERE id = ?1

-- ?2: the latest time to delay to.
-- name: has_due
SELECT EXISTS (SELECT 1 FROM notify_delayed WHERE not_before <= ?1)
OR EXISTS (SELECT 1 FROM notify_delayed WHERE not_before > ?2)

-- name: bring_near
UPDATE notify_delayed SET not_before = ?1 WHERE not_before > ?2

-- name: release_due
INSERT INTO notify_outbox(event) SELECT event FROM notify_delayed
WHERE not_before <= ?1 ORDER BY not_before, id LIMIT ?2

-- name: delete_due
DELETE FROM notify_delayed WHERE id IN (SELECT id FROM notify_delayed
WHERE not_before <= ?1 ORDER BY not_before, id LIMIT ?2)
