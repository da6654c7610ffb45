-- The audit log, which is also the history of the policies. A `?` stands for a value.

-- name: insert_entry
INSERT INTO weir_audit(id, at, who, action, target, state_before, state_after, undoes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- Followed by an AuditCondition.
-- name: select_entries
SELECT id, at, who, action, target, state_before, state_after, undoes FROM weir_audit WHERE

-- name: read_entry
SELECT id, at, who, action, target, state_before, state_after, undoes FROM weir_audit WHERE id = ?

-- name: read_history
SELECT id, at, who, action, target, state_before, state_after, undoes FROM weir_audit WHERE target LIKE 'policy:%'
 ORDER BY id DESC LIMIT ?

-- name: read_history_of
SELECT id, at, who, action, target, state_before, state_after, undoes FROM weir_audit WHERE target = ?
 ORDER BY id DESC LIMIT ?

-- Entries are numbered without gaps.
-- name: read_last_entry
SELECT last_entry FROM weir_policy_state WHERE one = 1
