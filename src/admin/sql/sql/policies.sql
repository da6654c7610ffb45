-- The policies in force, on every server. A `?` stands for a value.

-- name: read_changes
SELECT changes FROM weir_policy_state WHERE one = 1

-- Blocks all other changes until the transaction ends.
-- name: lock_state
SELECT changes, last_policy, last_entry FROM weir_policy_state WHERE one = 1 FOR UPDATE

-- name: write_state
UPDATE weir_policy_state SET changes = ?, last_policy = ?, last_entry = ? WHERE one = 1

-- One statement, so that all rows belong to the same version.
-- name: read_policies
SELECT s.changes, p.id, p.policy_key, p.type, p.capacity, p.refill_rate, p.window_seconds, p.buckets, p.domain,
 p.has_match, p.shadow, p.unlimited, p.on_store_error, p.cost, p.version, p.created_at, p.updated_at, p.expires_at,
 m.name, m.value
 FROM weir_policy_state s LEFT JOIN weir_policy p ON s.one = 1 LEFT JOIN weir_policy_match m ON m.policy_id = p.id
 ORDER BY p.id, m.position

-- The same columns of one policy.
-- name: read_policy
SELECT s.changes, p.id, p.policy_key, p.type, p.capacity, p.refill_rate, p.window_seconds, p.buckets, p.domain,
 p.has_match, p.shadow, p.unlimited, p.on_store_error, p.cost, p.version, p.created_at, p.updated_at, p.expires_at,
 m.name, m.value
 FROM weir_policy_state s JOIN weir_policy p ON p.policy_key = ? LEFT JOIN weir_policy_match m ON m.policy_id = p.id
 ORDER BY p.id, m.position

-- name: count_policies
SELECT COUNT(*) FROM weir_policy

-- name: insert_policy
INSERT INTO weir_policy(type, capacity, refill_rate, window_seconds, buckets, domain, has_match, shadow, unlimited,
 on_store_error, cost, version, created_at, updated_at, expires_at, policy_key, id)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: delete_policy
DELETE FROM weir_policy WHERE id = ?

-- name: insert_match
INSERT INTO weir_policy_match(policy_id, position, name, value) VALUES (?, ?, ?, ?)

-- name: delete_matches
DELETE FROM weir_policy_match WHERE policy_id = ?
