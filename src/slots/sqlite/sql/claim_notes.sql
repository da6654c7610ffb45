-- Notes of claims made directly on the file. See postgres/sql/claim_notes.sql.

-- name: note_claim
INSERT INTO rate_limit_claim_note VALUES (?1, ?2, ?3, ?4, 0)
ON CONFLICT DO UPDATE SET events = events + excluded.events

-- name: find_notes
SELECT minute, config_name, claimed_by, events FROM rate_limit_claim_note
WHERE minute <= ?1 AND taken_until <= ?2 ORDER BY 1, 2, 3 LIMIT ?3

-- name: take_note
UPDATE rate_limit_claim_note SET taken_until = ?4
WHERE minute = ?1 AND config_name = ?2 AND claimed_by = ?3

-- name: forget_note
DELETE FROM rate_limit_claim_note
WHERE minute = ?1 AND config_name = ?2 AND claimed_by = ?3 AND events = ?4
