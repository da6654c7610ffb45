UPDATE weir_limits AS l SET state = w.state, fresh_at = w.fresh_at
FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS w(key, state, fresh_at)
WHERE l.key = w.key
