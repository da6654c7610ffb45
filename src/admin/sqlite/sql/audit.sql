-- The audit log.

-- name: select_entries
SELECT id, at, who, action, target, before, after, undoes FROM audit WHERE

-- name: insert_entry
INSERT INTO audit (at, who, action, target, before, after, undoes)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- name: trim_entries
DELETE FROM audit WHERE id IN (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT
?3)
 WHERE at < ?1 OR (?2 > 0 AND id <=
 (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?2)))

-- name: latest_entry_of
SELECT MAX(id) FROM audit WHERE target = ?1
