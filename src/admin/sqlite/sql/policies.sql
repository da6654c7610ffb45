-- Policies and their versions.

-- name: delete_matches
DELETE FROM policy_match WHERE policy_id = ?1

-- name: insert_match
INSERT INTO policy_match (policy_id, position, name, value) VALUES (?1, ?2, ?3, ?4)

-- name: read_matches
SELECT policy_id, name, value FROM policy_match ORDER BY policy_id, position

-- name: read_policies
SELECT id, policy_key, type, capacity, refill_rate, window_seconds, buckets, domain,
 has_match, shadow, unlimited, on_store_error, cost, version, created_at, updated_at,
 expires_at FROM policy ORDER BY policy_key

-- name: insert_policy
INSERT INTO policy (policy_key, type, capacity, refill_rate, window_seconds, buckets,
domain,
 has_match, shadow, unlimited, on_store_error, cost, version, created_at, updated_at,
 expires_at, id)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
 NULLIF(?17, 0))

-- name: update_policy
UPDATE policy SET type = ?2, capacity = ?3, refill_rate = ?4, window_seconds = ?5,
 buckets = ?6, domain = ?7, has_match = ?8, shadow = ?9, unlimited = ?10,
 on_store_error = ?11, cost = ?12, version = ?13, created_at = ?14, updated_at = ?15,
 expires_at = ?16 WHERE id = ?1

-- name: delete_policy
DELETE FROM policy WHERE id = ?1

-- name: append_version
INSERT INTO policy_version (policy_key, at, who, action, before, after)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: trim_versions
DELETE FROM policy_version WHERE policy_key = ?1 AND id <= (SELECT id FROM policy_version
 WHERE policy_key = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)

-- name: read_versions
SELECT id, policy_key, at, who, action, before, after FROM policy_version
 ORDER BY id DESC LIMIT ?1

-- name: read_versions_of
SELECT id, policy_key, at, who, action, before, after FROM policy_version
 WHERE policy_key = ?2 ORDER BY id DESC LIMIT ?1

-- name: count_policies
SELECT COUNT(*) FROM policy
