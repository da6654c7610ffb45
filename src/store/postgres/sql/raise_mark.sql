-- $1: the mark's key, $2 and $3: its state and number if it has to be created (store/sql/mark.h).
INSERT INTO weir_limits AS l (key, state, fresh_at) VALUES ($1::bytea, $2::bytea, $3::bigint)
ON CONFLICT (key) DO UPDATE SET fresh_at = l.fresh_at + 1
RETURNING l.state, l.fresh_at
